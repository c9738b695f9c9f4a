internal import FoundationEssentials

/// The private keys of Tests/Vectors/keys. For tests and for nothing else: everybody has them.
public enum TestKeyFile {
    public static let rsa = text("rsa")
    public static let p256 = text("p256")

    /// Empty if the file is not there, which the tests notice.
    private static func text(_ name: String) -> String {
        let path = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Vectors/keys/\(name).pem")
        return (try? String(contentsOf: path, encoding: .utf8)) ?? ""
    }
}
