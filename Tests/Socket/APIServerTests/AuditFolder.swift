import Glibc
import RingbackBase
import Testing

/// A directory for an audit log, gone with the value.
final class AuditFolder: Sendable {
    private let path: String
    var file: String { "\(path)/audit.jsonl" }

    init() throws {
        var template = Array("/tmp/api-audit.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        unsafe unlink(file)
        unsafe rmdir(path)
    }

    /// The log as it stands on the disk.
    var text: String {
        let descriptor = unsafe open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        return String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
    }
}
