import CurlTransport
import Glibc
import RingbackBase
import Synchronization
import Testing

/// A TLS server with a certificate of its own for 127.0.0.1 and localhost: the command line tool of OpenSSL.
final class TLSServer: Sendable {
    static let tool = "/usr/bin/openssl"
    static var isPossible: Bool { unsafe access(tool, X_OK) == 0 }

    let port: Int
    let certificate: [UInt8]
    /// `sha256//BASE64` of its public key.
    let pin: String
    private let process: pid_t

    init(arguments: String = "") throws {
        let directory = "/tmp/ringback-tls-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        defer { _ = try? shell("rm -rf \(directory)") }
        _ = try shell(
            """
            mkdir -m 700 \(directory) && cd \(directory) && openssl req -x509 -newkey ec -pkeyopt \
            ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -addext \
            subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:provider.test -days 2 -keyout key -out cert 2>/dev/null
            """)
        certificate = Array(try shell("cat \(directory)/cert").utf8)
        let key = try shell(
            """
            openssl x509 -in \(directory)/cert -pubkey -noout | openssl pkey -pubin -outform der \
            | openssl dgst -sha256 -binary | openssl base64
            """)
        pin = "sha256//" + key.prefix { $0 != "\n" }
        let (process, output) = try spawn(
            "cd \(directory) && exec openssl s_server -accept 127.0.0.1:0 -cert cert -key key -www \(arguments) 2>&1")
        self.process = process
        // "ACCEPT 127.0.0.1:PORT"
        let line = readOutput(output) { $0.contains("ACCEPT") && $0.hasSuffix("\n") }
        close(output)
        let announced = line.split(separator: "\n").first { $0.hasPrefix("ACCEPT") } ?? ""
        guard let port = announced.split(separator: ":").last.flatMap({ Int($0) }) else { throw Failed(what: line) }
        self.port = port
    }

    deinit {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }

    var url: String { "https://127.0.0.1:\(port)/" }
}

struct Failed: Error { let what: String }

private let spawning = Mutex(())

private func spawn(_ command: String) throws -> (pid_t, Int32) {
    try spawning.withLock { _ in try spawnAlone(command) }
}

private func spawnAlone(_ command: String) throws -> (pid_t, Int32) {
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else { throw Failed(what: "pipe") }
    // A server that inherits the pipe of another command would keep it open.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    unsafe posix_spawn_file_actions_addclose(&actions, ends[0])
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    var process = pid_t()
    var arguments = unsafe [strdup("sh"), strdup("-c"), strdup(command), nil]
    defer { unsafe arguments.forEach { unsafe free($0) } }
    guard unsafe posix_spawn(&process, "/bin/sh", &actions, nil, &arguments, environ) == 0 else {
        throw Failed(what: command)
    }
    close(ends[1])
    return (process, ends[0])
}

/// What the descriptor gives until its end, or until enough has come.
private func readOutput(_ descriptor: Int32, until isEnough: (String) -> Bool = { _ in false }) -> String {
    var text = ""
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while !isEnough(text) {
        let count = unsafe buffer.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { break }
        text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    return text
}

private func shell(_ command: String) throws -> String {
    let (process, output) = try spawn(command)
    let text = readOutput(output)
    close(output)
    var status: Int32 = 0
    unsafe waitpid(process, &status, 0)
    guard status == 0 else { throw Failed(what: command) }
    return text
}

@Suite(.enabled(if: TLSServer.isPossible, "needs the openssl command"), .timeLimit(.minutes(5)))
struct `Trust in a server` {
    let client = CurlClient(version: "0.1-test")

    private func failure(_ url: String, _ trust: ServerTrust) async -> HTTPClientError? {
        await failureOf(client, HTTPRequest(url: url, trust: trust))
    }

    private func isUntrusted(_ error: HTTPClientError?) -> Bool {
        if case .untrusted(let host, _) = error { host.hasPrefix("127.0.0.1:") } else { false }
    }

    @Test func `PR-19, MD-08, NAT-44, FAPI-35: a certificate that nobody vouches for is refused`() async throws {
        let server = try TLSServer()
        #expect(isUntrusted(await failure(server.url, .system)))
    }

    @Test func `PR-19, MD-08: the configuration's authority replaces the system's`() async throws {
        let server = try TLSServer()
        let other = try TLSServer()
        #expect(await failure(server.url, ServerTrust(certificateAuthorities: server.certificate)) == nil)
        #expect(isUntrusted(await failure(server.url, ServerTrust(certificateAuthorities: other.certificate))))
    }

    @Test func `what one trust allowed is not reused for another`() async throws {
        let server = try TLSServer()
        #expect(await failure(server.url, ServerTrust(certificateAuthorities: server.certificate)) == nil)
        #expect(isUntrusted(await failure(server.url, .system)))
    }

    @Test(arguments: [Array("no certificate".utf8), []])
    func `an authority that is none refuses everybody`(certificates: [UInt8]) async throws {
        let server = try TLSServer()
        #expect(await failure(server.url, ServerTrust(certificateAuthorities: certificates)) != nil)
    }

    @Test func `a pinned key must be the server's`() async throws {
        let server = try TLSServer()
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        func trust(_ pins: [String]) -> ServerTrust {
            ServerTrust(certificateAuthorities: server.certificate, pinnedPublicKeys: pins)
        }
        #expect(await failure(server.url, trust([server.pin])) == nil)
        #expect(await failure(server.url, trust([other, server.pin])) == nil)
        #expect(isUntrusted(await failure(server.url, trust([other]))))
    }

    @Test func `a pin does not make up for a missing authority`() async throws {
        let server = try TLSServer()
        #expect(isUntrusted(await failure(server.url, ServerTrust(pinnedPublicKeys: [server.pin]))))
    }

    @Test func `PR-19: TLS before 1.2 is refused`() async throws {
        let server = try TLSServer(arguments: "-tls1_1 -cipher 'ALL:@SECLEVEL=0'")
        #expect(isUntrusted(await failure(server.url, ServerTrust(certificateAuthorities: server.certificate))))
    }

    @Test func `PR-19, MD-08: plain HTTP where TLS is expected is named as such`() async {
        let server = ScriptedServer { connection in
            connection.answer()
            connection.waitUntilClosed()
        }
        let error = await failure("https://127.0.0.1:\(server.port)/", .system)
        #expect(error == .wrongScheme(host: "127.0.0.1:\(server.port)", speaksTLS: false))
    }

    @Test(arguments: [
        "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        "Your browser sent a request that this server could not understand.<br />\nReason: You're speaking plain HTTP "
            + "to an SSL-enabled server port.<br />",
        "Client sent an HTTP request to an HTTPS server.\n",
    ])
    func `a server that speaks TLS and is asked by plain HTTP is named as such`(body: String) async {
        let server = ScriptedServer.answering("400 Bad Request", body: body)
        let error = await failure("http://127.0.0.1:\(server.port)/", .system)
        #expect(error == .wrongScheme(host: "127.0.0.1:\(server.port)", speaksTLS: true))
    }

    @Test func `a TLS version that is too old is not taken for plain HTTP`() async throws {
        let server = try TLSServer(arguments: "-tls1_1 -cipher 'ALL:@SECLEVEL=0'")
        let error = await failure(server.url, ServerTrust(certificateAuthorities: server.certificate))
        guard case .untrusted(_, let reason) = error else {
            return #expect(Bool(false), "\(String(describing: error))")
        }
        #expect(reason == "the TLS handshake failed")
    }
}
