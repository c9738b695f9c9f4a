import Adapters
import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

struct DockerCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "docker-credential", abstract: "Give docker, podman and skopeo the token for a registry.",
        discussion: """
            A credential helper: the tool runs it and writes the registry's name to its standard input. The \
            configuration's [[origin]] tables say which account's token goes to which registry. Errors are on standard \
            output, as the protocol says. Also run as docker-credential-ringback.
            """)

    @Argument(help: "get, store, erase, list or version.")
    var action: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let action = DockerCredential.Action(rawValue: action) else {
            throw ValidationError("The action is get, store, erase, list or version.")
        }
        let status = answer(action)
        if status != 0 { throw ExitCode(status) }
    }

    /// The exit status.
    private func answer(_ action: DockerCredential.Action) -> Int32 {
        switch action {
        case .version: return AdapterCalls.print(DockerCredential.version(Ringback.version))
        case .list: return list()
        case .get: return get()
        case .erase, .store:
            // If the input were left unread, a tool could fail before it reads the response.
            _ = AdapterCalls.readInput(atMost: DockerCredential.maxInput)
            return action == .erase ? 0 : fail(DockerCredential.storesNothing)
        }
    }

    private func get() -> Int32 {
        do throws(AdapterFailure) {
            let credential = try DockerCredential(
                reading: AdapterCalls.readInput(atMost: DockerCredential.maxInput))
            let found: AdapterCredential
            do throws(RingbackError) {
                // docker shows a helper's output only after it ends, so the user would not see a pending sign-in.
                found = try AdapterCalls(socket: daemon.socket, tool: "docker").lookup(credential.request) { false }
            } catch {
                guard error.kind != .notFound else { return fail(DockerCredential.notFound) }
                return fail(AdapterCalls.failure(error).lines.joined(separator: " "))
            }
            return AdapterCalls.print(try credential.answer(found))
        } catch {
            return fail(error.reason)
        }
    }

    /// The origins of the configuration that are found without a user name, since `get` names none.
    private func list() -> Int32 {
        do throws(RingbackError) {
            let entries = OriginEntry.all(in: try ConfigurationFile(stated: nil).report())
                .filter { $0.rule.username == nil }
            return AdapterCalls.print(
                DockerCredential.list(entries.map { ($0.rule.pattern, $0.json["username"]?.string) }))
        } catch {
            return fail(AdapterCalls.failure(error).lines.joined(separator: " "))
        }
    }

    /// The protocol's errors are on standard output.
    private func fail(_ text: String) -> Int32 {
        Output.line(text)
        return ExitStatus.failed
    }
}
