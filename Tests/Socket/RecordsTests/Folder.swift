import Glibc
import RingbackBase
import Synchronization
import Testing

@testable import Records

/// A directory of its own, gone with the value; and a clock that stands until it is moved.
final class Folder: Sendable {
    let path: String
    let clock = Atomic<Int>(1_800_000_000)
    let reports = Mutex<[String]>([])

    init() throws {
        var template = Array("/tmp/records.XXXXXX".utf8CString)
        try #require(unsafe mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["audit.jsonl", "audit.jsonl.1", "target"] + sockets.flatMap({ [$0, "\($0).1"] }) {
            unsafe unlink("\(path)/\(name)")
        }
        unsafe rmdir("\(path)/later")
        unsafe rmdir(path)
    }

    var sockets: [String] {
        guard let stream = unsafe opendir(path) else { return [] }
        defer { unsafe closedir(stream) }
        var found: [String] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasPrefix("audit-"), name.hasSuffix(".jsonl") { found.append(name) }
        }
        return found.sorted()
    }

    var reportCount: Int { reports.withLock { $0.count } }
    var file: String { "\(path)/audit.jsonl" }

    func log(at path: String? = nil, maxSize: Int = 1 << 20) -> AuditLog {
        var options = AuditLog.Options(
            now: { [self] in clock.load(ordering: .relaxed) },
            report: { [self] text in reports.withLock { $0.append(text) } })
        options.maxSize = maxSize
        // Long: the tests flush.
        options.interval = .seconds(3_600)
        return AuditLog(path: path ?? file, options: options)
    }

    func put(_ text: String, in name: String = "audit.jsonl") throws {
        let descriptor = unsafe open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        try #require(descriptor >= 0)
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        try #require(unsafe write(descriptor, bytes, bytes.count) == bytes.count)
    }

    func text(of name: String = "audit.jsonl") -> String {
        let descriptor = unsafe open("\(path)/\(name)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
    }

    func lines(of name: String = "audit.jsonl") -> [String] {
        text(of: name).split(separator: "\n").map(String.init)
    }

    func mode(of name: String = "audit.jsonl") -> UInt32 {
        var status = stat()
        return unsafe stat("\(path)/\(name)", &status) == 0 ? status.st_mode & 0o777 : 0
    }

    func size(of name: String) -> Int {
        var status = stat()
        return unsafe stat("\(path)/\(name)", &status) == 0 ? Int(status.st_size) : 0
    }
}
