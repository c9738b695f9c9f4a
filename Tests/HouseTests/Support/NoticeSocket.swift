import Glibc
import TestSupport

/// Stands for systemd: the datagram socket that a service tells how it stands (sd_notify(3)).
final class NoticeSocket: Sendable {
    let path: String
    private let descriptor: Int32
    private let messages = Watched<[String]>([])

    init(path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        let code: Int32 = unsafe ServerPlace.unix(path).withAddress { [descriptor] address, length in
            unsafe bind(descriptor, address, length) == 0 ? 0 : errno
        }
        guard code == 0 else { throw SystemError(call: "bind", code: code) }
        startThread { [descriptor, messages] in
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while true {
                let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                let text = String(decoding: buffer[..<count], as: UTF8.self)
                messages.change { $0.append(text) }
            }
            Glibc.close(descriptor)
        }
    }

    var count: Int { messages.value.count }

    /// Waits for a message after the first `count` ones.
    func wait(for message: String, after count: Int) async throws {
        _ = try await messages.first("the notice \(message)") { messages in
            messages.dropFirst(count).contains { $0.split(separator: "\n").contains { $0 == message } } ? true : nil
        }
    }

    func close() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
