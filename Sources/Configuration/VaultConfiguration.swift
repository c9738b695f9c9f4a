/// `[vault]`: how sessions rest on disk.
public struct VaultConfiguration: Sendable, Equatable {
    /// Where the vault's key rests; one of ``keySources``. Chosen once: for a vault that has a key already, another word
    /// here locks it until `ringback vault rekey` has moved the key.
    public var keySource: String
    /// The directory of the source `key-file`; nil for the usual one. Absolute.
    public var keyDirectory: String?
    /// The vault is locked when the screen is.
    public var locksWithScreen: Bool

    /// The words for `key_source`.
    public static let keySources = [
        "auto", "secret-service", "systemd-credential", "passphrase", "key-file", "memory",
    ]

    /// What holds without `[vault]`.
    public static let standard = VaultConfiguration(keySource: "auto", keyDirectory: nil, locksWithScreen: false)

    /// Reads the table over what held before it.
    static func read(
        _ table: TOMLTableReader, over before: VaultConfiguration, place: ConfigurationPlace, check: inout KeyCheck
    ) -> VaultConfiguration {
        var vault = before
        if let word = table.string("key_source") { vault.keySource = word }
        if let truth = table.boolean("lock_with_screen") { vault.locksWithScreen = truth }
        if let written = table.string("key_directory"), let node = table.node("key_directory") {
            if let path = place.path(written) {
                vault.keyDirectory = path
            } else {
                check.refuse(node, ["vault", "key_directory"], "must be an absolute path, or begin with ~/")
            }
        }
        // A lock that could never be is no protection: better no start than a false sense of one.
        if vault.locksWithScreen, vault.keySource == "memory",
            let node = table.node("lock_with_screen") ?? table.node("key_source")
        {
            check.refuse(
                node, ["vault", "lock_with_screen"],
                "cannot be with key_source = \"memory\": sessions in memory alone cannot be locked")
        }
        return vault
    }
}
