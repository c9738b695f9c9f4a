import FoundationEssentials
import Glibc
import LocalHTTP
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct `A listening socket` {
    private static func server() -> HTTPServer { HTTPServer { _ in .text("here") } }

    private static func mode(_ path: String) -> UInt32 {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return 0 }
        return status.st_mode
    }

    @Test func `is the owner's alone`() async throws {
        try await TestServer.run(Self.server()) { test in
            guard case .unix(let path) = test.place else { return }
            #expect(Self.mode(path) == S_IFSOCK | 0o600)
        }
    }

    @Test func `lets others as far as it is told to, whatever the umask says`() async throws {
        try await TestServer.withDirectory { directory in
            for (name, wanted) in [("own", 0o600), ("others", 0o666)] as [(String, UInt32)] {
                let path = "\(directory)/\(name).sock"
                let server = Self.server()
                _ = try server.listen(at: .unix(path: path, mode: wanted))
                #expect(Self.mode(path) == S_IFSOCK | wanted)
                server.close()
                try await server.run()
            }
        }
    }

    @Test func `replaces one that a crash left behind`() async throws {
        try await TestServer.withDirectory { directory in
            let path = directory + "/test.sock"
            try #require(Self.leaveSocket(at: path))
            #expect(throws: SystemError.self) { try RawClient(.unix(path)) }
            let server = Self.server()
            _ = try server.listen(at: .unix(path: path))
            let running = Task { try await server.run() }
            #expect(
                try await TestServer(server: server, place: .unix(path)).ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n").text
                    == "here")
            running.cancel()
            try await running.value
        }
    }

    @Test func `is not replaced while somebody listens at it`() async throws {
        try await TestServer.withDirectory { directory in
            let path = directory + "/test.sock"
            let first = Self.server()
            _ = try first.listen(at: .unix(path: path))
            let file = SocketFile(at: path)
            #expect(throws: ServerError.pathInUse(path)) { try Self.server().listen(at: .unix(path: path)) }
            #expect(file != nil && SocketFile(at: path) == file)
            first.close()
            try await first.run()
        }
    }

    @Test func `has its file removed by its server, and another one that is at its path now is not`() async throws {
        try await TestServer.withDirectory { directory in
            let (own, taken) = (directory + "/own.sock", directory + "/taken.sock")
            let server = Self.server()
            for path in [own, taken] { _ = try server.listen(at: .unix(path: path)) }
            #expect(unsafe rename(taken, directory + "/former.sock") == 0)
            #expect(Self.leaveSocket(at: taken))
            let other = SocketFile(at: taken)
            server.removeSocketFiles()
            #expect(SocketFile(at: own) == nil && other != nil && SocketFile(at: taken) == other)
            server.close()
            try await server.run()
        }
    }

    /// Binds a socket and forgets it, as a killed daemon does.
    private static func leaveSocket(at path: String) -> Bool {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }

    @Test(arguments: ["file", "directory", "link to a file", "link to a socket", "dangling link"])
    func `touches nothing else at its path`(kind: String) async throws {
        try await TestServer.withDirectory { directory in
            let (path, target) = (directory + "/test.sock", directory + "/target")
            let files = FileManager.default
            switch kind {
            case "file": #expect(files.createFile(atPath: path, contents: Data("precious".utf8)))
            case "directory": try files.createDirectory(atPath: path, withIntermediateDirectories: false)
            default:
                if kind == "link to a file" {
                    #expect(files.createFile(atPath: target, contents: Data("precious".utf8)))
                }
                if kind == "link to a socket" { #expect(Self.leaveSocket(at: target)) }
                try files.createSymbolicLink(atPath: path, withDestinationPath: target)
            }
            let before = (Self.mode(path), Self.mode(target))
            #expect(throws: ServerError.pathOccupied(path)) { try Self.server().listen(at: .unix(path: path)) }
            #expect((Self.mode(path), Self.mode(target)) == before)
        }
    }

    @Test func `has a path that fits`() async throws {
        try await TestServer.withDirectory { directory in
            let path = directory + "/" + String(repeating: "x", count: 120)
            #expect(throws: ServerError.pathTooLong(path)) { try Self.server().listen(at: .unix(path: path)) }
            let nowhere = directory + "/missing/test.sock"
            #expect(throws: ServerError.system(call: "bind", errno: ENOENT)) {
                try Self.server().listen(at: .unix(path: nowhere))
            }
        }
    }

    @Test(arguments: ["127.0.0.1", "::1"]) func `says that its port is in use`(host: String) async throws {
        try await TestServer.runTCP(Self.server(), host: host) { test in
            let port =
                switch test.place {
                case .ipv4(let port), .ipv6(let port): port
                case .unix: 0
                }
            #expect(port > 0)
            #expect(throws: ServerError.portInUse(port)) {
                try Self.server().listen(at: .loopback(host: host, port: port))
            }
            // The other family is another port.
            let other = Self.server()
            let otherHost = host == "::1" ? "127.0.0.1" : "::1"
            if (try? other.listen(at: .loopback(host: otherHost, port: port))) != nil {
                other.stopListening(port: port)
            }
        }
    }

    @Test(arguments: ["0.0.0.0", "::", "localhost", "192.168.0.1", "127.0.0.2", ""]) func `NAT-09: is on loopback only`(
        host: String
    ) {
        #expect(throws: ServerError.system(call: "bind", errno: EADDRNOTAVAIL)) {
            try Self.server().listen(at: .loopback(host: host, port: 0))
        }
    }

    @Test(arguments: [-1, 65_536, .max]) func `has a port that exists`(port: Int) {
        #expect(throws: ServerError.system(call: "bind", errno: EINVAL)) {
            try Self.server().listen(at: .loopback(host: "127.0.0.1", port: port))
        }
    }

    @Test func `may be one that somebody else opened`() async throws {
        try await TestServer.withDirectory { directory in
            let path = directory + "/activated.sock"
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
            let isBound = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
                }
            }
            try #require(isBound)
            let server = Self.server()
            // Bound, but not listening yet.
            #expect(throws: ServerError.unsuitableDescriptor) { try server.listen(at: .descriptor(descriptor)) }
            try #require(listen(descriptor, 10) == 0)
            _ = try server.listen(at: .descriptor(descriptor))
            #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
            let running = Task { try await server.run() }
            // More than one: the server must not wait in `accept` while others are connected.
            try await onThread {
                let clients = try (0..<50).map { _ in try RawClient(.unix(path)) }
                for client in clients + clients {
                    client.get("/")
                    #expect(try client.answer().text == "here")
                }
            }
            running.cancel()
            try await running.value
        }
    }

    @Test func `is neither a TCP socket nor a file that somebody else opened`() throws {
        let tcp = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let datagram = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        defer { for descriptor in [tcp, datagram] { close(descriptor) } }
        try #require(listen(tcp, 1) == 0)
        for descriptor in [tcp, datagram, STDERR_FILENO, -1, 9_999] {
            #expect(throws: ServerError.unsuitableDescriptor) { try Self.server().listen(at: .descriptor(descriptor)) }
        }
    }

    @Test func `closes one port and keeps its connections`() async throws {
        let server = Self.server()
        try await TestServer.runTCP(server) { test in
            guard case .ipv4(let port) = test.place else { return }
            let client = try test.client()
            client.get("/")
            #expect(try await onThread { try client.answer().status } == 200)
            server.stopListening(port: port)
            try await RawClient.waitUntilRefused(test.place)
            client.get("/")
            #expect(try await onThread { try client.answer().status } == 200)
        }
    }
}
