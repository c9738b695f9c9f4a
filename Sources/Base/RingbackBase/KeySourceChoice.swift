/// Where the key of the vault may be kept (`[vault] key_source`, `ringback vault rekey`).
public enum KeySourceChoice: String, Sendable, CaseIterable {
    case auto
    case secretService = "secret-service"
    case systemdCredential = "systemd-credential"
    case passphrase
    case keyFile = "key-file"
    /// Nothing is written to disk.
    case memory
}
