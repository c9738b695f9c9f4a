import Adapters
import ArgumentParser
import RingbackClient

struct GoAuthVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "goauth", abstract: "Give the go command the token for a module's server.",
        discussion: """
            For GOAUTH: go runs it with a URL and writes the server's response to its standard input. The \
            configuration's [[origin]] tables say which account's token goes to which server. Without a URL nothing is \
            printed: a token is given only where a server asks for one.
            """)

    @Argument(help: "The URL that the server refused.")
    var url: String?

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard let url else { return }
        let calls = AdapterCalls(socket: daemon.socket, tool: "go")
        try AdapterCalls.verb { () throws(AdapterFailure) in
            let asked = try GoAuth(url: url, response: AdapterCalls.readInput(atMost: GoAuth.maxInput))
            return try calls.answer(asked.request) { found throws(AdapterFailure) in
                guard asked.isRefused else { return try asked.answer(found) }
                // It is the one that was given last, unless another process of go has had that one replaced.
                guard calls.reject(asked.rejection(of: found)) == 0 else { return try asked.answer(found) }
                let renewed = try? calls.credential(asked.request)
                return try asked.answer(renewed ?? found)
            }
        }
    }
}
