import Glibc
import RingbackBase
import TestSupport
import Testing

@testable import PostgresClient

private typealias Line = SpokenServer.Line

@Suite(.timeLimit(.minutes(2))) struct `A server that has not proved its name` {
    private static let mechanisms = SpokenServer.request(10, "SCRAM-SHA-256\0\0")
    private static let noTLS = Array("N".utf8)
    private static let clear = SpokenServer.request(3)
    private static let digest = SpokenServer.request(5, "salt")
    private static let ready = SpokenServer.request(0) + SpokenServer.message("Z", Array("I".utf8))

    private static func iterations(_ text: String) -> [UInt8] { SpokenServer.request(11, "r=x,s=c2FsdA==,i=\(text)") }

    /// Each with the lines over TCP, where the client first asks for TLS, and the failure.
    private static let attempts: [(String, [Line], DatabaseReason)] = [
        ("clear text", [.say(noTLS), .say(clear)], .weakAuthentication),
        ("MD5", [.say(noTLS), .say(digest)], .weakAuthentication),
        ("crypt", [.say(noTLS), .say(SpokenServer.request(4, "sa"))], .weakAuthentication),
        ("GSSAPI", [.say(noTLS), .say(SpokenServer.request(7))], .weakAuthentication),
        ("with the answer about TLS", [.say(noTLS + clear)], .weakAuthentication),
        ("beside SCRAM", [.say(noTLS), .say(mechanisms + clear)], .weakAuthentication),
        ("after SCRAM", [.say(noTLS), .say(mechanisms), .say(digest)], .weakAuthentication),
        ("beside TLS", [.say(Array("S".utf8) + clear)], .malformed),
        ("many iterations", [.say(noTLS), .say(mechanisms), .say(iterations("2000000000"))], .tooMuch),
        ("iterations that are no number", [.say(noTLS), .say(mechanisms), .say(iterations(" 2e9"))], .malformed),
        ("a long message", [.say(noTLS), .say(Array("R".utf8) + SpokenServer.bytes(1 << 30))], .tooMuch),
        ("endless settings", [.say(noTLS + SpokenServer.request(0)), .repeatEndlessly(setting)], .tooMuch),
        ("endless notices", [.say(noTLS + SpokenServer.request(0)), .repeatEndlessly(notice)], .tooMuch),
        ("an endless result", [.say(noTLS), .say(ready), .repeatEndlessly(row)], .tooMuch),
    ]
    private static let setting = SpokenServer.message("S", Array("name\0value\0".utf8))
    private static let notice = SpokenServer.message("N", Array("SNOTICE\0C00000\0Mmuch\0\0".utf8))
    private static let row =
        SpokenServer.message("D", [0, 1] + SpokenServer.bytes(1_000) + [UInt8](repeating: 0, count: 1_000))

    @Test(arguments: 0..<attempts.count) func `gets no password, and takes no more than a little memory`(
        index: Int
    ) async throws {
        let (what, lines, wanted) = Self.attempts[index]
        let server = try SpokenServer(overTCP: true, lines)
        let failure = try await server.failure()
        #expect(failure == wanted || failure == .noLibrary, "\(what): \(String(describing: failure))")
        #expect(!server.received.contains(SpokenServer.password), "\(what)")
        // An MD5 digest would be a message of its own.
        #expect(!server.received.contains("md5"), "\(what)")
    }

    @Test(arguments: ["", "?sslmode=verify-full", "?sslmode=prefer", "?sslmode=allow", "?sslmode=disable"])
    func `gets no password on a Unix socket, whatever the mode of TLS`(query: String) async throws {
        for line in [Self.clear, Self.digest] {
            let server = try SpokenServer([.say(line)])
            let failure = try await server.failure(query)
            #expect(failure == .weakAuthentication || failure == .noLibrary, "\(String(describing: failure))")
            #expect(!server.received.contains(SpokenServer.password) && !server.received.contains("md5"))
        }
    }

    @Test func `may send an error if its owner is not known, and nothing else`() {
        var check = StartCheck(isVerified: false)
        let error = SpokenServer.message("E", Array("SFATAL\0C53300\0Mtoo many\0\0".utf8))
        #expect(check.refusal(of: error, isKnown: false) == nil)
        #expect(check.refusal(of: Self.mechanisms, isKnown: false) == .foreignServer(uid: nil))
    }

    @Test func `a server that has proved its name may ask for any proof, of few iterations`() {
        var check = StartCheck(isVerified: true)
        #expect(check.refusal(of: Self.clear + Self.digest + Self.mechanisms + Self.iterations("4096")) == nil)
        #expect(check.refusal(of: Self.iterations("1000001")) == .tooMuch)
    }

    @Test func `a request is recognized however it is cut into packets`() {
        for request in [Self.clear, Self.mechanisms + Self.digest, Self.mechanisms + Self.iterations("1000001")] {
            for cut in 1..<request.count {
                var check = StartCheck(isVerified: false)
                #expect(check.refusal(of: request[..<cut]) == nil, "\(cut)")
                #expect(check.refusal(of: request[cut...]) != nil, "\(cut)")
            }
        }
    }
}

@Suite struct `The owner of a server on this machine` {
    private func owner(overIPv6: Bool, accepts: Bool) throws -> UInt32? {
        let place = overIPv6 ? ServerPlace.ipv6 : ServerPlace.ipv4
        let listener = try place(0).listen()
        defer { close(listener) }
        let client = try place(localPort(of: listener)).connect()
        defer { close(client) }
        let accepted = accepts ? accept(listener, nil, nil) : -1
        defer { if accepted >= 0 { close(accepted) } }
        return ServerOwner.uid(of: client)
    }

    @Test(arguments: [false, true]) func `is known when it has accepted the connection, and not before`(
        overIPv6: Bool
    ) throws {
        #expect(try owner(overIPv6: overIPv6, accepts: true) == geteuid())
        #expect(try owner(overIPv6: overIPv6, accepts: false) == nil)
    }

    @Test func `must be root, this user, postgres or the one of the configuration`() {
        #expect(ServerOwner.isTrusted(0, configured: nil) && ServerOwner.isTrusted(geteuid(), configured: nil))
        #expect(!ServerOwner.isTrusted(4_000_000_001, configured: nil))
        #expect(!ServerOwner.isTrusted(4_000_000_001, configured: 4_000_000_002))
        #expect(ServerOwner.isTrusted(4_000_000_001, configured: 4_000_000_001))
    }
}
