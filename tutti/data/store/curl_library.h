#pragma once
// libcurl, loaded when something is fetched: linked, it would bring thirty libraries into every
// rank of every run.

#include <curl/curl.h>

namespace tutti::data {

/// The functions of libcurl that fetch.cpp calls, under the library's own names.
struct CurlLibrary {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
  CURLcode (*easy_setopt)(CURL*, CURLoption, ...);
  CURLcode (*easy_getinfo)(CURL*, CURLINFO, ...);
};

/// Loads and initialises it at the first call. Throws IoError where it is not installed.
const CurlLibrary& curl_library();

}  // namespace tutti::data
