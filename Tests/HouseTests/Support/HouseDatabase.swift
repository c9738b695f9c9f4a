import Glibc
import TestSupport
import Testing

/// A real PostgreSQL in a private directory, on a Unix socket alone, which ends with the stage. The role postgres needs no
/// password, any other does.
struct HouseDatabase {
    static let isPossible = !FileTree.names(in: "/usr/lib/postgresql").isEmpty

    let directory: String
    private let stage: Stage

    /// Starts the server with a database named `vault`.
    init(_ stage: Stage) async throws {
        var template = Array("/tmp/rb-pg-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw SystemError(call: "mkdtemp", code: errno) }
        let directory = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        self.directory = directory
        self.stage = stage
        _ = try stage.start("/bin/bash", ["-c", Self.script, "database", directory])
        try await stage.eventually("a database", within: Bound.seconds(60)) {
            unsafe access("\(directory)/ready", F_OK) == 0
        }
    }

    /// Ends the server, as a crash does, until ``comeBack()``.
    func goAway() async throws {
        _ = unsafe close(creat("\(directory)/away", 0o600))
        let lines = FileTree.text(of: "\(directory)/data/postmaster.pid")?.split(separator: "\n") ?? []
        if let pid = lines.first.flatMap({ Int32($0) }) { kill(pid, SIGQUIT) }
        try await stage.eventually("the end of the database") { unsafe access("\(directory)/gone", F_OK) == 0 }
    }

    func comeBack() { _ = unsafe unlink("\(directory)/away") }

    /// As an administrator reaches it.
    var url: String {
        "postgresql://postgres@\(directory.split(separator: "/").map { "%2F\($0)" }.joined())/vault"
    }

    /// PostgreSQL refuses to run as root.
    private static let script = #"""
        cd "$1" || exit 1
        trap 'kill -INT $server 2>/dev/null; wait; rm -rf "$1"; exit 0' TERM EXIT
        programs=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
        as=
        if [ "$(id -u)" = 0 ]; then
            user=postgres
            id -u postgres >/dev/null 2>&1 || user=nobody
            chown "$user" "$1"
            as="setpriv --reuid=$(id -u $user) --regid=$(id -g $user) --clear-groups"
        fi
        $as "$programs/initdb" -D data -U postgres -E UTF8 --locale=C.UTF-8 --no-sync --auth=trust >init.log 2>&1 || exit 1
        printf 'local all postgres trust\nlocal all all scram-sha-256\n' >data/pg_hba.conf
        while :; do
            $as "$programs/postgres" -D data -k "$1" -c listen_addresses= -c fsync=off -c shared_buffers=16MB \
                >>server.log 2>&1 </dev/null &
            server=$!
            if [ ! -e ready ]; then
                until "$programs/psql" -h "$1" -U postgres -qc 'create database vault' >/dev/null 2>&1; do
                    sleep 0.05
                done
                touch ready
            fi
            wait $server
            [ -e away ] || exit 1
            touch gone
            while [ -e away ]; do sleep 0.05; done
            rm gone
        done
        """#
}
