import Glibc
import Synchronization
import TestSupport
import Testing

@testable import PostgresClient

/// A real PostgreSQL in a private directory, on a Unix socket alone. It ends with the test process, however that ends.
final class PostgresServer: Sendable {
    static let shared = Mutex<PostgresServer?>(nil)
    static let programs = ProgramPlace.postgres
    static var isPossible: Bool { programs != nil }

    let directory: String
    private let keeper: Mutex<Keeper>
    private let prefix: String

    /// Makes a database and starts the server. A database named `trusting` lets every role in without a password.
    ///
    /// - Parameter user: whose process it is, if this process may choose that.
    init(_ options: String = "", user: String? = nil) throws {
        let programs = try #require(PostgresServer.programs)
        var template = Array("/tmp/rb-pg-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
        directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        prefix = ServerUser.prefix(owning: directory, user)
        let script = """
            set -e
            cd '\(directory)'
            (\(prefix) '\(programs)/initdb' -D data -U postgres -E UTF8 --locale=C.UTF-8 --no-sync --auth=trust) >init.log 2>&1
            printf 'local trusting all trust\\nlocal all postgres trust\\nlocal all all scram-sha-256\\nhost all all 127.0.0.1/32 trust\\n' >data/pg_hba.conf
            """
        guard Shell.run(script) == 0 else { throw ServerTrouble(what: "initdb") }
        keeper = Mutex(try Keeper(directory, "\(prefix) \(Self.command(programs, directory, options))"))
        try awaitReady()
        for name in ["vault", "trusting"] {
            guard Shell.run("\(psql) -c 'create database \(name)'") == 0 else { throw ServerTrouble(what: name) }
        }
    }

    private static func command(_ programs: String, _ directory: String, _ options: String) -> String {
        "'\(programs)/postgres' -D data -k '\(directory)' -c listen_addresses= "
            + "-c fsync=off -c shared_buffers=16MB -c max_connections=300 \(options) >>server.log 2>&1"
    }

    static func running() throws -> PostgresServer {
        try shared.withLock { shared in
            if let shared { return shared }
            let made = try PostgresServer()
            shared = made
            return made
        }
    }

    var psql: String {
        "\(PostgresServer.programs ?? "")/psql -h '\(directory)' -U postgres -XAtq -v ON_ERROR_STOP=1 -d postgres"
    }

    func url(_ user: String, _ database: String = "trusting") throws -> PostgresURL {
        let host = directory.split(separator: "/").joined(separator: "%2F")
        return try PostgresURL(parsing: "postgresql://\(user)@%2F\(host)/\(database)")
    }

    /// A port that nobody had a moment ago.
    static func freePort() throws -> Int {
        let socket = try ServerPlace.ipv4(0).bind()
        defer { close(socket) }
        return localPort(of: socket)
    }

    var processes: [pid_t] {
        guard let first = Shell.output("head -1 '\(directory)/data/postmaster.pid'").flatMap({ pid_t($0) }) else {
            return []
        }
        let children = Shell.output("ps -o pid= --ppid \(first)") ?? ""
        return [first] + children.split(whereSeparator: \.isWhitespace).compactMap { pid_t($0) }
    }

    func signal(_ number: Int32) { for process in processes { kill(process, number) } }

    func crashAndRestart(_ options: String = "", port: Int = 5_432) throws {
        let programs = try #require(PostgresServer.programs)
        crash()
        try keeper.withLock { keeper in
            keeper = try Keeper(directory, "\(prefix) \(Self.command(programs, directory, "-p \(port) \(options)"))")
        }
        try awaitReady(port)
    }

    /// Kills every process, and waits until they have ended: the next server refuses to start as long as one of them has the
    /// shared memory.
    func crash() {
        // The first process makes no more of them meanwhile.
        if let first = processes.first { kill(first, SIGSTOP) }
        let all = processes
        for process in all { kill(process, SIGKILL) }
        keeper.withLock { $0.end() }
        let numbers = all.map(String.init).joined(separator: ",")
        _ = Shell.run("for n in $(seq 600); do ps -o stat= -p \(numbers) | grep -qv '^Z' || exit 0; sleep 0.05; done")
    }

    private func awaitReady(_ port: Int = 5_432) throws {
        let isReady = "\(PostgresServer.programs ?? "")/pg_isready -q -h '\(directory)' -p \(port)"
        guard Shell.run("for n in $(seq 600); do \(isReady) && exit 0; sleep 0.05; done; exit 1") == 0 else {
            throw ServerTrouble(what: Shell.output("tail -5 '\(directory)/server.log'") ?? "")
        }
    }

    deinit {
        keeper.withLock { $0.end() }
        _ = Shell.run("rm -rf '\(directory)'")
    }
}

struct ServerTrouble: Error { let what: String }

/// A shell that runs a server, and ends it when this process ends: its standard input is then at its end.
struct Keeper {
    private let process: pid_t
    private let input: Int32

    init(_ directory: String, _ command: String) throws {
        let script =
            "exec 2>/dev/null; cd '\(directory)'; \(command) </dev/null & server=$!; read -r line; kill -QUIT $server 2>/dev/null; "
            + "wait; [ \"$line\" = end ] || rm -rf '\(directory)'"
        var ends: [Int32] = [-1, -1]
        guard Shell.pair(&ends) else { throw SystemError(call: "socketpair", code: errno) }
        defer { close(ends[0]) }
        process = try #require(Shell.start(script, input: ends[0]))
        input = ends[1]
    }

    func end() {
        _ = sendLine("end\n", to: input)
        close(input)
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
    }

    private func sendLine(_ line: String, to descriptor: Int32) -> Int {
        unsafe write(descriptor, line, line.utf8.count)
    }
}

/// PostgreSQL refuses to run as root.
enum ServerUser {
    static func prefix(owning directory: String, _ name: String? = nil) -> String {
        guard geteuid() == 0 else { return "exec" }
        for name in [name, "postgres", "nobody"].compactMap(\.self) {
            guard let user = unsafe getpwnam(name) else { continue }
            unsafe chown(directory, user.pointee.pw_uid, user.pointee.pw_gid)
            return unsafe "exec setpriv --reuid=\(user.pointee.pw_uid) --regid=\(user.pointee.pw_gid) --clear-groups"
        }
        return "exec"
    }
}

enum ProgramPlace {
    /// The directory of PostgreSQL's programs: that of the environment, or of the newest version that is there.
    static let postgres = Shell.output(
        "ls -d ${RINGBACK_TEST_POSTGRES:-/usr/lib/postgresql/*/bin}/initdb 2>/dev/null | sort -V | tail -1"
    )
    .flatMap { $0.hasSuffix("/initdb") ? String($0.dropLast("/initdb".count)) : nil }
    static let pooler = Shell.output("command -v pgbouncer || ls /usr/sbin/pgbouncer 2>/dev/null")
        .flatMap { $0.isEmpty ? nil : $0 }
}

enum Shell {
    /// Two ends that no other program inherits.
    static func pair(_ ends: inout [Int32]) -> Bool {
        unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0
    }

    static func run(_ script: String) -> Int32 {
        guard let process = start(script, input: -1) else { return -1 }
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
        return status
    }

    static func output(_ script: String) -> String? {
        var ends: [Int32] = [-1, -1]
        guard pair(&ends) else { return nil }
        defer { close(ends[0]) }
        let process = start(script, input: -1, output: ends[1])
        close(ends[1])
        guard let process else { return nil }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = unsafe read(ends[0], &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        var status: Int32 = 0
        unsafe waitpid(process, &status, 0)
        while bytes.last == 0x0A { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    static func start(_ script: String, input: Int32, output: Int32 = -1) -> pid_t? {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        if input >= 0 { unsafe posix_spawn_file_actions_adddup2(&actions, input, 0) }
        if output >= 0 { unsafe posix_spawn_file_actions_adddup2(&actions, output, 1) }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let words = ["/bin/bash", "-c", script]
        var vector = unsafe words.map { unsafe strdup($0) } + [nil]
        defer {
            var index = 0
            while unsafe index < vector.count {
                unsafe free(vector[index])
                index += 1
            }
        }
        var child = pid_t()
        return unsafe posix_spawn(&child, words[0], &actions, &attributes, &vector, environ) == 0 ? child : nil
    }
}
