internal import CLinux
internal import Glibc

/// The path of a process's executable as it was when this value was made.
struct ExecutableLink: Sendable {
    /// `/proc/PID/exe`, for C.
    private let link: [CChar]
    private let path: [UInt8]

    /// A longer path counts as changed each time it is compared.
    private static let mostCompared = 1_000

    init(of pid: Int32) {
        link = pid > 0 ? Array("/proc/\(pid)/exe".utf8CString) : []
        guard !link.isEmpty else {
            path = []
            return
        }
        let link = link
        // Copied at its length: the paths of many processes are kept.
        path = unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4_096) { buffer in
            let count = unsafe ExecutableLink.read(link, into: buffer)
            return unsafe Array(buffer[..<count])
        }
    }

    /// Nil if the process had ended or its executable cannot be read. Bytes that are not UTF-8 are replaced.
    var text: String? { path.isEmpty ? nil : String(decoding: path, as: UTF8.self) }

    /// True if the process with this id runs this executable now. Called for each connection: one system call, and
    /// nothing is allocated.
    var isCurrent: Bool {
        guard !link.isEmpty else { return true }
        let most = ExecutableLink.mostCompared
        return unsafe withUnsafeTemporaryAllocation(of: UInt8.self, capacity: most + 1) { buffer in
            let count = unsafe ExecutableLink.read(link, into: buffer)
            return unsafe count <= most && buffer[..<count].elementsEqual(path)
        }
    }

    /// False if this process finds another file at the path, since the process has mounts of its own, or cannot find out
    /// without waiting for a file system. True if there is no such file here.
    ///
    /// Attack: a program on a file system of its own that does not answer (FUSE) would stop every client.
    var isFoundHere: Bool {
        guard !path.isEmpty else { return true }
        return unsafe clinux_is_same_file(link, path.map { CChar(bitPattern: $0) } + [0])
    }

    /// Returns the number of bytes; 0 if the link cannot be read.
    private static func read(_ link: [CChar], into buffer: UnsafeMutableBufferPointer<UInt8>) -> Int {
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe max(0, readlink(link, start, buffer.count))
    }
}
