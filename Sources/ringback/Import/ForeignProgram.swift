import Adapters
import Glibc
import RingbackClient
import Terminal

/// A program whose accounts can be imported, and where its configuration is.
enum ForeignProgram: String, CaseIterable {
    case oidcAgent = "oidc-agent"
    case pizauth
    case gitCredentialOAuth = "git-credential-oauth"
    case gh
    case glab

    static let kind: RingbackError.Kind = "import_failed"

    /// The program's accounts.
    ///
    /// - Parameters:
    ///   - entry: the account that the user named. Only oidc-agent's accounts have a passphrase each.
    ///   - file: the file to read, instead of the program's own; `-` is standard input.
    func accounts(entry: String?, file: String?) throws(RingbackError) -> [ForeignAccount] {
        let text: [UInt8]
        switch (self, file) {
        case (_, let file?): text = try ForeignProgram.contents(of: file)
        case (.oidcAgent, nil): text = try ForeignProgram.printed(entry)
        case (.gitCredentialOAuth, nil): text = try ForeignProgram.gitListing()
        case (.pizauth, nil), (.gh, nil), (.glab, nil): text = try ForeignProgram.contents(of: try usualFile())
        }
        do throws(AdapterFailure) {
            return switch self {
            case .oidcAgent: [try OIDCAgentAccount.read(text)]
            case .pizauth: try PizauthConfiguration(reading: text).accounts
            case .gitCredentialOAuth: try GitConfiguration(listing: text).oauthAccounts()
            case .gh: try HostsFile(reading: text).accountsOfGH()
            case .glab: try HostsFile(reading: text).accountsOfGlab()
            }
        } catch {
            throw RingbackError(ForeignProgram.kind, "\(rawValue): \(error.reason) Nothing was changed.")
        }
    }

    /// What oidc-gen prints of an account, after it has asked for the passphrase.
    private static func printed(_ entry: String?) throws(RingbackError) -> [UInt8] {
        guard Tool.isInstalled("oidc-gen") else {
            throw RingbackError(
                ForeignProgram.kind,
                "oidc-gen is not installed. Name a file with what oidc-gen --print wrote: --file PATH")
        }
        let names = OIDCAgentAccount.names(in: Tool.run(["oidc-gen", "--accounts"])?.output ?? "")
        let name: String
        if let entry {
            guard !entry.hasPrefix("-"), !entry.contains("/") else { throw ForeignProgram.unknown(entry, among: names) }
            name = entry
        } else {
            guard names.count == 1, let only = names.first else { throw ForeignProgram.unknown(nil, among: names) }
            name = only
        }
        // The user types the passphrase into oidc-gen.
        let (status, output) = try Programs.run(["oidc-gen", "--print=\(name)"], within: .seconds(300), asksUser: true)
        guard status == 0, let start = output.firstIndex(of: UInt8(ascii: "{")) else {
            throw RingbackError(ForeignProgram.kind, "oidc-gen did not print the account. Nothing was changed.")
        }
        return Array(output[start...])
    }

    static func unknown(_ entry: String?, among names: [String]) -> RingbackError {
        let list = names.map { Sanitizer.line($0) }.joined(separator: ", ")
        return RingbackError(
            ExitStatus.usageKind,
            names.isEmpty
                ? "There is no account to import."
                : "\(entry == nil ? "Name the account to import" : "There is no such account"). There are: \(list)")
    }

    private static func gitListing() throws(RingbackError) -> [UInt8] {
        let words = ["git", "-C", "/", "config", "-z", "--get-regexp", #"^credential\..*\.oauth"#]
        let (status, output) = try Programs.run(words)
        // 1: there is no such variable.
        guard status == 0 || status == 1 else {
            throw RingbackError(ForeignProgram.kind, "git config ended with status \(status). Nothing was changed.")
        }
        return output
    }

    /// Where the program looks itself.
    private func usualFile() throws(RingbackError) -> String {
        func variable(_ name: String) -> String? { SocketPlace.variable(name).flatMap { $0.isEmpty ? nil : $0 } }
        let home = variable("HOME").map { $0 + "/.config" }
        guard let configuration = variable("XDG_CONFIG_HOME") ?? home else {
            throw RingbackError("no_place", "Set HOME, or name the file with --file.")
        }
        return switch self {
        case .gh: (variable("GH_CONFIG_DIR") ?? configuration + "/gh") + "/hosts.yml"
        case .glab: (variable("GLAB_CONFIG_DIR") ?? configuration + "/glab-cli") + "/config.yml"
        case .pizauth, .oidcAgent, .gitCredentialOAuth: configuration + "/pizauth.conf"
        }
    }

    /// A file's bytes, one more than is read at most if it has more.
    private static func contents(of path: String) throws(RingbackError) -> [UInt8] {
        guard path != "-" else { return AdapterCalls.readInput(atMost: ForeignAccount.maxInput) }
        let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw CandidateFile.failure("read", path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= ForeignAccount.maxInput {
            let count = unsafe read(file, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw CandidateFile.failure("read", path) }
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
