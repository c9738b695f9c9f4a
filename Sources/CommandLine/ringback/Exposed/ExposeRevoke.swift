import ArgumentParser
import RingbackAPI
import RingbackClient
import StrictJSON
import Terminal

struct ExposeRevoke: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "End a restricted socket and its connections.",
        discussion: "Tokens that it has issued stay valid until they expire.")

    @Argument(help: "The socket's name.")
    var name: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        try present { () throws(RingbackError) in
            let socket: JSON
            do throws(RingbackError) {
                socket = try daemon.calls().call(.revokeExposedSocket, [name])
            } catch {
                throw error.kind == .notFound ? SignInAdvice.adding("See: ringback expose list", to: error) : error
            }
            if json.isWanted {
                Output.json(socket)
            } else {
                Output.line("\(Sanitizer.line(socket["name"]?.string ?? name)) is no longer exposed.")
                guard let place = socket["source"]?.string, place != "api" else { return }
                Output.note(
                    Sanitizer.line(
                        "It stays closed until its table in the configuration is changed: \(place)", limit: 4_000))
            }
        }
    }
}
