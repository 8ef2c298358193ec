// Defines the symbols that oneCCL's static library for processors leaves open: the hooks of Intel's
// tracing library (ITT). A null hook is not called. They are weak, for a oneCCL that comes with
// that library.

extern "C" {
[[gnu::weak]] void* __itt_domain_create_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_string_handle_create_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_task_begin_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_task_end_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_metadata_add_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_thread_set_name_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_event_create_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_event_start_ptr__3_0 = nullptr;
[[gnu::weak]] void* __itt_event_end_ptr__3_0 = nullptr;
}
