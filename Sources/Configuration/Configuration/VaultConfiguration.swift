public import PostgresClient
public import RingbackBase

/// `[vault]`: how sessions are stored on disk.
public struct VaultConfiguration: Sendable, Equatable {
    /// Where the vault's key is made. If it is changed later, the vault is locked after a restart until `ringback vault
    /// rekey` has moved the key.
    public var keySource: KeySourceChoice
    /// The directory of the source `key-file`, absolute; nil for the default.
    public var keyDirectory: String?
    public var locksWithScreen: Bool
    /// The database whose rows several hosts share; nil for a vault of this host alone.
    public var store: PostgresURL?
    /// The file with the password of the database's role, absolute; nil for what the URL or `.pgpass` says.
    public var passwordFile: String?
    /// A further user of this machine whose process may be the database's server.
    public var storeUID: UInt32?

    public static let standard = VaultConfiguration(keySource: .auto, keyDirectory: nil, locksWithScreen: false)

    /// Reads the table; missing keys keep the values of `before`.
    static func read(_ table: SettingTable, over before: VaultConfiguration) -> VaultConfiguration {
        var vault = before
        if let source: KeySourceChoice = table.word("key_source") { vault.keySource = source }
        if let truth = table.boolean("lock_with_screen") { vault.locksWithScreen = truth }
        if let path = table.filePath("key_directory") { vault.keyDirectory = path }
        if let written = table.string("store"),
            let store = table.reporting("store", { () throws(PostgresURLError) in try PostgresURL(parsing: written) })
        {
            vault.store = store
        }
        if let path = table.filePath("password_file") {
            vault.passwordFile = path
            if vault.store == nil, !table.has("store") {
                table.refuse("password_file", "is for a database, which store names")
            }
        }
        if let number = table.integer("store_uid") { vault.storeUID = UInt32(exactly: number) }
        if vault.store != nil, vault.keySource == .memory, table.has("store") {
            table.refuse(
                "store",
                "cannot be used with key_source = \"memory\": a token that the database does not have yet would be lost"
            )
        }
        if vault.locksWithScreen, vault.keySource == .memory,
            let node = table.node("lock_with_screen") ?? table.node("key_source")
        {
            table.refuse(
                "lock_with_screen", node, "cannot be used with key_source = \"memory\": such a vault cannot be locked")
        }
        return vault
    }
}

extension PostgresURLError: SettingFailure {
    var message: String {
        switch self {
        case .scheme: "must begin with postgresql://"
        case .malformed: "is not a URL"
        case .noUser: "must name the database's role: postgresql://ROLE@HOST/DATABASE"
        case .password: "must not have a password: use password_file"
        case .badHost: "must name a host, an address or the directory of a socket"
        case .badPort: "has a port that is not a number from 1 to 65535"
        case .unknownParameter(let name): "has the parameter \(name), which is not known"
        case .repeatedParameter(let name): "has the parameter \(name) twice"
        case .badValue(let name): "has a value of \(name) that is not allowed"
        case .weakTLS: "must not have another sslmode than verify-full, since the host is not this machine"
        }
    }
}
