internal import Glibc

/// Reads and writes return EAGAIN instead of waiting.
func setNonBlocking(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
}

/// Programs that we start do not get the descriptor.
func closeOnExec(_ descriptor: Int32) {
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
}

/// For a place where `close` would mean something else.
func closeDescriptor(_ descriptor: Int32) {
    close(descriptor)
}

/// Closes every descriptor from `first` on: whoever started the daemon may have left some open, and no command of the
/// configuration shall find them.
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
