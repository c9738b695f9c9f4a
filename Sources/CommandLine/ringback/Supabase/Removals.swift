import ArgumentParser
import RingbackAPI
import RingbackBase
import RingbackClient
import Terminal

/// A verb that removes a factor, passkey or identity of the user by its id, which another verb lists.
protocol SupabaseRemoval: ParsableCommand {
    static var endpoint: Endpoint { get }
    /// The command that lists identifiers, without the account.
    static var list: ShownCommand { get }
    var account: String { get }
    var id: String { get }
    var json: JSONOption { get }
    var daemon: DaemonOptions { get }

    func show(_ answer: JSON) throws(RingbackError)
}

extension SupabaseRemoval {
    func show(_ answer: JSON) throws(RingbackError) { Output.line("Removed \(Sanitizer.line(id))") }

    func run() throws {
        try present(account: account) { () throws(RingbackError) in
            let answer: JSON
            do throws(RingbackError) {
                answer = try daemon.calls().project(Self.endpoint, account, id)
            } catch {
                throw IdentifierHint.explained(error, see: ShownCommand("\(Self.list) \(account)"))
            }
            if json.isWanted { Output.json(answer) } else { try show(answer) }
        }
    }
}

struct SupabaseRemoveFactor: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "remove-factor", abstract: "Remove a second factor.",
        discussion: "Removing a verified one needs a session of the second level.")
    static let endpoint = Endpoint.removeFactor
    static let list: ShownCommand = "ringback supabase factors"

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The factor, as “supabase factors” shows it.")
    var id: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions
}

struct SupabaseRemovePasskey: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "remove-passkey", abstract: "Remove a passkey: it cannot be used for sign-ins any more.",
        discussion: "If the user has a second factor, this needs a session of the second level.")
    static let endpoint = Endpoint.removePasskey
    static let list: ShownCommand = "ringback supabase passkeys"

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The passkey, as “supabase passkeys” shows it.")
    var id: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions
}

struct SupabaseUnlink: SupabaseRemoval {
    static let configuration = CommandConfiguration(
        commandName: "unlink", abstract: "Unlink a provider's account from the user.",
        discussion: "The last one cannot be unlinked: the user could not sign in any more.")
    static let endpoint = Endpoint.unlinkIdentity
    static let list: ShownCommand = "ringback supabase identities"

    @Argument(help: "The account.", completion: Completions.accounts)
    var account: String

    @Argument(help: "The identity, as “supabase identities” shows it.")
    var id: String

    @OptionGroup var json: JSONOption
    @OptionGroup var daemon: DaemonOptions

    func show(_ answer: JSON) throws(RingbackError) { try SupabaseIdentities.show(answer) }
}
