import HTTPMessages

/// Microsoft's directories share one issuer location, `…/common/v2.0`. Its metadata contain a template as issuer,
/// `…/{tenantid}/v2.0`. A token names the subject's directory in `iss` and in `tid`.
///
/// A template is accepted only if the configured issuer is the same text with an alias in place of the directory. A
/// token's `iss` may differ from the template only in the directory's id, which must equal its `tid`.
enum IssuerTemplate {
    private static let placeholder = "{tenantid}"
    private static let aliases = ["common", "organizations", "consumers"]

    /// True if metadata of the configured issuer may have this template as issuer.
    static func mayState(_ stated: String, for configured: WebURL) -> Bool {
        guard let (prefix, suffix) = parts(of: stated), suffix.isEmpty || suffix.hasPrefix("/") else { return false }
        // The alias must be a whole path segment, never a part of the host.
        let authority = configured.text.dropLast(configured.path.utf8.count)
        guard prefix.hasSuffix("/"), prefix.hasPrefix(authority) else { return false }
        return aliases.contains { (prefix + $0 + suffix).isSameBytes(as: configured.text) }
    }

    /// True if the issuer of a token or callback is the expected one, byte for byte. For a template it may be the
    /// issuer of any directory; `tenant`, if given, must be this directory.
    static func admits(_ stated: String, expected: String, tenant: String?) -> Bool {
        guard let (prefix, suffix) = parts(of: expected) else { return stated.isSameBytes(as: expected) }
        guard stated.hasPrefix(prefix), stated.hasSuffix(suffix),
            stated.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return false }
        let directory = String(stated.utf8.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count)) ?? ""
        guard isDirectoryID(directory), (prefix + directory + suffix).isSameBytes(as: stated) else { return false }
        return tenant.map { $0.isSameBytes(as: directory) } ?? true
    }

    static func isTemplate(_ issuer: String) -> Bool { parts(of: issuer) != nil }

    /// The text before and after the placeholder; nil if there is not exactly one. Braces are not allowed in URLs, so
    /// no real issuer is taken for a template.
    private static func parts(of text: String) -> (prefix: String, suffix: String)? {
        let pieces = text.split(separator: placeholder, omittingEmptySubsequences: false)
        return pieces.count == 2 ? (String(pieces[0]), String(pieces[1])) : nil
    }

    /// True for 8-4-4-4-12 hexadecimal digits.
    static func isDirectoryID(_ text: String) -> Bool {
        let groups = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return groups.map(\.count) == [8, 4, 4, 4, 12]
            && groups.allSatisfy { group in
                group.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
                    default: false
                    }
                }
            }
    }
}
