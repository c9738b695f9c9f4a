public import Secrets

/// `[vault]`: how sessions are stored on disk.
public struct VaultConfiguration: Sendable, Equatable {
    /// The source of the vault's key. It is used when the key is made. If it is changed later,
    /// the vault is locked after a restart until `ringback vault rekey` has moved the key.
    public var keySource: KeySourceChoice
    /// The directory of the source `key-file`, absolute; nil for the default.
    public var keyDirectory: String?
    /// True if the vault is locked when the screen is.
    public var locksWithScreen: Bool

    /// The default without `[vault]`.
    public static let standard = VaultConfiguration(keySource: .auto, keyDirectory: nil, locksWithScreen: false)

    /// Reads the table; missing keys keep the values of `before`.
    static func read(
        _ table: TOMLTableReader, over before: VaultConfiguration, place: ConfigurationPlace, check: inout KeyCheck
    ) -> VaultConfiguration {
        var vault = before
        if let source = table.string("key_source").flatMap(KeySourceChoice.init) { vault.keySource = source }
        if let truth = table.boolean("lock_with_screen") { vault.locksWithScreen = truth }
        if let written = table.string("key_directory"), let node = table.node("key_directory") {
            if let path = place.path(written) {
                vault.keyDirectory = path
            } else {
                check.refuse(node, ["vault", "key_directory"], "must be an absolute path, or begin with ~/")
            }
        }
        // The vault in memory cannot be locked. The setting would give a false impression, so it is an error.
        if vault.locksWithScreen, vault.keySource == .memory,
            let node = table.node("lock_with_screen") ?? table.node("key_source")
        {
            check.refuse(
                node, ["vault", "lock_with_screen"],
                "cannot be used with key_source = \"memory\": such a vault cannot be locked")
        }
        return vault
    }
}
