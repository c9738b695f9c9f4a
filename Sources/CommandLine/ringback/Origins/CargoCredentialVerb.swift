import Adapters
import ArgumentParser
import RingbackClient

struct CargoCredentialVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cargo-credential", abstract: "Give cargo the token for a registry.",
        discussion: """
            A credential provider: cargo runs it and writes requests to its standard input. The configuration's \
            [[origin]] tables say which account's token goes to which registry, by the URL of its index. Also run as \
            cargo-credential-ringback.
            """)

    @Flag(help: "How cargo runs a provider.")
    var cargoPlugin = false

    @OptionGroup var daemon: DaemonOptions

    func run() throws {
        guard AdapterCalls.print(CargoCredential.hello) == 0 else { throw ExitCode.failure }
        while let line = AdapterCalls.readLine(atMost: CargoCredential.maxLine) {
            guard AdapterCalls.print(answer(line)) == 0 else { throw ExitCode.failure }
            // What follows a line that is too long cannot be told from requests.
            guard line.count <= CargoCredential.maxLine else { throw ExitCode.failure }
        }
    }

    private func answer(_ line: [UInt8]) -> [UInt8] {
        let credential: CargoCredential
        do throws(CargoCredential.Refused) {
            credential = try CargoCredential(reading: line)
        } catch {
            return CargoCredential.answer(error.refusal)
        }
        do throws(RingbackError) {
            let calls = AdapterCalls(socket: daemon.socket, tool: "cargo")
            guard credential.wantsToken else {
                let isOurs = try calls.hasOrigin(credential.request)
                return CargoCredential.answer(isOurs ? .operationNotSupported : .urlNotSupported)
            }
            guard let found = try calls.credential(credential.request) else {
                return CargoCredential.answer(.urlNotSupported)
            }
            do throws(AdapterFailure) {
                return try credential.answer(found)
            } catch {
                return CargoCredential.answer(.other(error.reason))
            }
        } catch {
            return CargoCredential.answer(.other(AdapterCalls.failure(error).lines.joined(separator: " ")))
        }
    }
}
