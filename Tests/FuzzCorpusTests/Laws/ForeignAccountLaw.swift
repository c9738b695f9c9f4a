import Adapters

/// What the programs write from which accounts are imported. The first line is the program, the rest its text.
enum ForeignAccountLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (program, text) = bytes.headLineAndRest
        for account in (try? accounts(of: program, text)) ?? [] {
            let texts: [String?] = [
                account.issuer, account.preset, account.authorizationEndpoint, account.tokenEndpoint, account.clientID,
                account.clientSecret, account.redirectURI, account.refreshToken, account.server, account.name,
            ]
            for text in texts.compactMap(\.self) + account.scopes + account.notes {
                try hold("no text has a control character", text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
            }
            let name = account.accountName
            try hold("a name has 1 to 64 characters", (1...64).contains(name.utf8.count))
            try hold(
                "a name is one of an account",
                name.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
                    default: false
                    }
                } && name.first.map { $0.isLetter || $0.isNumber } == true)
        }
    }

    private static func accounts(of program: String, _ text: [UInt8]) throws -> [ForeignAccount] {
        switch program {
        case "oidc-agent": [try OIDCAgentAccount.read(text)]
        case "pizauth": try PizauthConfiguration(reading: text).accounts
        case "git": try GitConfiguration(listing: text).oauthAccounts()
        case "gh": try HostsFile(reading: text).accountsOfGH()
        case "glab": try HostsFile(reading: text).accountsOfGlab()
        default: []
        }
    }
}
