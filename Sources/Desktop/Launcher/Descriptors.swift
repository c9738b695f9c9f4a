internal import Glibc

/// Reads and writes return EAGAIN instead of waiting.
func setNonBlocking(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
}

/// Sets close-on-exec: programs that we start do not inherit the descriptor.
func closeOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
}

/// Calls the C library's `close` where another function has this name.
func closeDescriptor(_ descriptor: Int32) {
    close(descriptor)
}

/// Closes every descriptor from `first` on. The program that started the daemon may have left some open, which commands
/// must not inherit.
func closeDescriptors(from first: Int32) {
    guard let directory = unsafe opendir("/proc/self/fd") else { return }
    let own = unsafe dirfd(directory)
    var found: [Int32] = []
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
            unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
        }
        if let descriptor = Int32(name), descriptor >= first, descriptor != own { found.append(descriptor) }
    }
    unsafe closedir(directory)
    for descriptor in found { close(descriptor) }
}
