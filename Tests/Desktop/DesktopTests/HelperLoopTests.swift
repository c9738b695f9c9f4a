import Glibc
import RingbackBase
import Testing

@testable import Desktop

@Suite(.timeLimit(.minutes(5))) struct `The helper` {
    private func answer(to command: [String], bounds: RunningCommand.Bounds = .init()) async throws -> String {
        let helper = try InnerHelper(bounds: bounds, commands: ["mail": command])
        return try await helper.connection.clientSecret(account: "mail").revealed()
    }

    @Test(arguments: [
        (["/bin/echo", "hunter2"], "hunter2"),
        // A program without a slash is found in PATH.
        (["echo", "hunter2"], "hunter2"), (["/bin/echo", "$HOME `id` ; exit 1"], "$HOME `id` ; exit 1"),
        // Line ends after the secret are left out, and nothing else.
        (["/usr/bin/printf", "a\\n\\n"], "a"), (["/usr/bin/printf", "a"], "a"),
        (["/usr/bin/printf", " a \\r\\n"], " a "), (["/usr/bin/printf", "a\\nb\\r"], "a\nb"),
        // The input is empty.
        (["/bin/sh", "-c", "readlink /proc/self/fd/0; cat; echo end"], "/dev/null\nend"),
    ])
    func `a secret is what the command prints, which is run without a shell`(
        command: [String], secret: String
    ) async throws {
        #expect(try await answer(to: command) == secret)
    }

    @Test func `takes 64 KiB and not a byte more`() async throws {
        let most = try await answer(to: ["/bin/sh", "-c", "head -c 65536 /dev/zero | tr '\\0' x"])
        #expect(most.utf8.count == 65_536)
        await #expect(throws: HelperError.commandFailed(reason: "printed more than 65536 bytes")) {
            try await answer(to: ["/bin/sh", "-c", "head -c 65537 /dev/zero | tr '\\0' x"])
        }
        await #expect(throws: HelperError.commandFailed(reason: "printed more than 65536 bytes")) {
            try await answer(to: ["/usr/bin/yes"])
        }
    }

    @Test(arguments: [
        (["/bin/false"], "exited with status 1"), (["/bin/sh", "-c", "echo secret; exit 42"], "exited with status 42"),
        (["/bin/sh", "-c", "echo secret; kill -TERM $$"], "was ended by signal 15"), (["/bin/true"], "printed nothing"),
        (["/bin/echo"], "printed nothing"),
        (["/nonexistent/program"], "could not be started: No such file or directory"),
        (["ringback-no-such-program"], "could not be started: No such file or directory"),
        (["/etc"], "could not be started: Permission denied"),
        ([], "is not in the configuration of account 'mail'"),
    ])
    func `says how a command failed, and none of its output`(command: [String], reason: String) async throws {
        await #expect(throws: HelperError.commandFailed(reason: reason)) { try await answer(to: command) }
    }

    @Test func `knows no command but the configuration's`() async throws {
        let helper = try InnerHelper(commands: ["mail": ["/bin/echo", "x"]])
        let reason = "is not in the configuration of account '/bin/echo'"
        await #expect(throws: HelperError.commandFailed(reason: reason)) {
            try await helper.connection.clientSecret(account: "/bin/echo")
        }
    }

    @Test func `kills a command that hangs, with all it started`() async throws {
        let line = try LifeLine()
        let script = "exec 3>'\(line.path)'; (trap '' TERM; echo >&3; sleep 600) & wait"
        // Long enough for the command to begin, on a busy machine too.
        let bounds = RunningCommand.Bounds(time: .seconds(5))
        await #expect(throws: HelperError.commandFailed(reason: "did not finish within 5 s")) {
            try await answer(to: ["/bin/sh", "-c", script], bounds: bounds)
        }
        #expect(await line.hasEnded())
    }

    @Test func `does not wait for what the command left behind`() async throws {
        // An agent that a command starts may keep its standard output.
        let process = try await answer(to: ["/bin/sh", "-c", "sleep 600 & echo $!"])
        kill(try #require(pid_t(process)), SIGKILL)
    }

    @Test func `serves a quick command beside a slow one`() async throws {
        let line = try LifeLine()
        let helper = try InnerHelper(commands: [
            "slow": ["/bin/sh", "-c", "echo > '\(line.path)'; sleep 600"], "quick": ["/bin/echo", "now"],
        ])
        let slow = Task { try await helper.connection.clientSecret(account: "slow") }
        #expect(await line.hasBegun())
        #expect(try await helper.connection.clientSecret(account: "quick").revealed() == "now")
        slow.cancel()
        await #expect(throws: HelperError.cancelled) { try await slow.value }
    }

    @Test func `answers many requests at once, each with its own secret`() async throws {
        let names = (0..<12).map { "account\($0)" }
        let commands = names.map { ($0, ["/bin/sh", "-c", "head -c 60000 /dev/zero | tr '\\0' x; echo \($0)"]) }
        let helper = try InnerHelper(commands: Dictionary(uniqueKeysWithValues: commands))
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for name in names {
                group.addTask {
                    let secret = try await helper.connection.clientSecret(account: name).revealed()
                    return secret.utf8.count == 60_000 + name.utf8.count && secret.hasSuffix(name)
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
    }

    @Test func `runs sixteen commands at once at most`() async throws {
        let helper = try InnerHelper(bounds: .init(time: .seconds(600)), commands: ["slow": ["/bin/sleep", "600"]])
        let (first, others) = await withTaskGroup(of: String.self) { group in
            for _ in 0..<17 {
                group.addTask {
                    do throws(HelperError) {
                        _ = try await helper.connection.clientSecret(account: "slow", timeout: .seconds(600))
                        return ""
                    } catch {
                        return "\(error)"
                    }
                }
            }
            // Nothing else ends: whoever is answered was refused, and the others are under way.
            let first = await group.next()
            group.cancelAll()
            return (first, await group.reduce(into: Set<String>()) { $0.insert($1) })
        }
        #expect(first == "client_secret_command was not started: 16 commands run already")
        #expect(others == ["\(HelperError.cancelled)"])
    }

    @Test func `kills its commands and ends when the daemon goes`() async throws {
        let line = try LifeLine()
        var helper: InnerHelper? = try InnerHelper(commands: [
            "slow": ["/bin/sh", "-c", "exec 3>'\(line.path)'; echo >&3; sleep 600"]
        ])
        let slow = Task { [connection = helper?.connection] in
            try await connection?.clientSecret(account: "slow", timeout: .seconds(30))
        }
        #expect(await line.hasBegun())
        slow.cancel()
        _ = try? await slow.value
        helper = nil
        #expect(await line.hasEnded())
    }
}
