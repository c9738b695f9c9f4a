import Glibc
import Synchronization
import TestSupport

/// Listens as a database, and says the next of its lines after each packet that comes. Then it closes the connection.
final class SpokenServer: Sendable {
    enum Line: Sendable {
        case say([UInt8])
        /// The same bytes until nobody takes them.
        case repeatEndlessly([UInt8])
    }

    /// For a URL.
    let host: String
    private let listener: Int32
    private let directory: String?
    private let heard = Mutex<[UInt8]>([])

    /// On a Unix socket, or on a port of 127.0.0.1.
    init(overTCP: Bool = false, _ lines: [Line]) throws {
        if overTCP {
            directory = nil
            listener = try ServerPlace.ipv4(0).listen()
            host = "127.0.0.1:\(localPort(of: listener))"
        } else {
            var template = Array("/tmp/rb-pg-XXXXXX".utf8CString)
            guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
            let place = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            listener = try ServerPlace.unix("\(place)/.s.PGSQL.5432").listen()
            directory = place
            host = place.split(separator: "/").map { "%2F\($0)" }.joined()
        }
        startThread { [listener, weak self] in
            while true {
                let connection = accept(listener, nil, nil)
                // The thread closes what it listens on: closed elsewhere, the number could be another server's by now.
                guard connection >= 0 else {
                    close(listener)
                    return
                }
                for line in lines {
                    guard let bytes = SpokenServer.receive(connection) else { break }
                    self?.heard.withLock { $0 += bytes }
                    switch line {
                    case .say(let bytes): _ = SpokenServer.send(bytes, connection)
                    case .repeatEndlessly(let bytes): while SpokenServer.send(bytes, connection) {}
                    }
                }
                if let bytes = SpokenServer.receive(connection) { self?.heard.withLock { $0 += bytes } }
                close(connection)
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        if let directory {
            _ = unsafe unlink("\(directory)/.s.PGSQL.5432")
            _ = unsafe rmdir(directory)
        }
    }

    var received: String { String(decoding: heard.withLock { $0 }, as: UTF8.self) }

    static func message(_ kind: Character, _ body: [UInt8] = []) -> [UInt8] {
        Array(String(kind).utf8) + bytes(UInt32(body.count + 4)) + body
    }

    static func bytes(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    /// Asks for a proof of the role.
    static func request(_ number: UInt32, _ more: String = "") -> [UInt8] {
        message("R", bytes(number) + Array(more.utf8))
    }

    private static func receive(_ connection: Int32) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = unsafe read(connection, &buffer, buffer.count)
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    private static func send(_ bytes: [UInt8], _ connection: Int32) -> Bool {
        unsafe Glibc.send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
