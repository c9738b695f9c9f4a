/// What is wrong with a request, or why it has to be made again.
public enum RequestReason: Sendable, Equatable {
    /// The account has no such sign-in method; `offered` are those it has.
    case unknownMethod(AccountName, method: SignInMethod, offered: [String])
    /// Only Ringback sets this authorization parameter.
    case parameterReserved
    /// The authorization parameter has no name, or the configuration sets it.
    case parameterTaken
    /// The callback of the account does not come to a port of this machine.
    case callbackElsewhere(AccountName)
    /// The configuration of the account fixes the port.
    case portFixed(AccountName, port: Int)
    /// What a member of a downscoped token's request or of an exposed socket has to be; `most` is how many it may have.
    case scopes(most: Int)
    case textWithoutControls
    case absoluteURI
    case socketName
    case noAccounts
    case tooMany(most: Int)
    case ceiling(most: Int)
    case overflowUID
    case flatpakID
    case uidsWithFlatpak
    /// An exposed socket serves the MCP server of one account, and no token.
    case mcpOfSeveral
    case scopesWithMCP
    /// A name of a tool or of a method; `most` is in bytes.
    case mcpName(most: Int)
    /// `most` is in seconds.
    case lifetime(most: Int)
    /// The table of origins changed while the request was processed.
    case originsChanged
}
