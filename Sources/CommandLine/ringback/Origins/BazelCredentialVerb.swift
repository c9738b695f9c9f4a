import Adapters
import ArgumentParser

struct BazelCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bazel-credential", abstract: "Give Bazel and similar build tools the token for a server.",
        discussion: """
            A credential helper as Bazel runs it: a URI as JSON on standard input, header fields as JSON on standard \
            output. The configuration's [[origin]] tables say which account's token goes to which server. Also run as \
            bazel-credential-ringback.
            """)

    @Argument(help: "get.")
    var action: String

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard action == "get" else { throw ValidationError("The action is get.") }
        let calls = AdapterCalls(socket: daemon.socket, tool: "bazel")
        try AdapterCalls.verb { () throws(AdapterFailure) in
            let asked = try BazelCredential(reading: AdapterCalls.readInput(atMost: BazelCredential.maxInput))
            return try calls.answer(asked.request, otherwise: AdapterCalls.noOrigin) { found throws(AdapterFailure) in
                try asked.answer(found)
            }
        }
    }
}
