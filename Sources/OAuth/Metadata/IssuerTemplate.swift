import HTTPMessages

/// Microsoft's directories share one place, `…/common/v2.0`, whose metadata state no issuer but a template of one,
/// `…/{tenantid}/v2.0`; a token then names the directory that signed the person in, in `iss` and in `tid`.
///
/// A template speaks only for the place it was found at: the configured issuer is the template itself, with an alias
/// for the directory. All that may differ in a token's `iss` is a directory's id, and that must be its `tid`.
enum IssuerTemplate {
    private static let placeholder = "{tenantid}"
    private static let aliases = ["common", "organizations", "consumers"]

    /// True if metadata that were asked for on behalf of the configured issuer may state this template.
    static func mayState(_ stated: String, for configured: WebURL) -> Bool {
        guard let (prefix, suffix) = parts(of: stated), suffix.isEmpty || suffix.hasPrefix("/") else { return false }
        // The alias is a whole segment of the path, never a part of the host.
        let authority = configured.text.dropLast(configured.path.utf8.count)
        guard prefix.hasSuffix("/"), prefix.hasPrefix(authority) else { return false }
        return aliases.contains { (prefix + $0 + suffix).isSameBytes(as: configured.text) }
    }

    /// True if the issuer that a token or a callback states is the expected one, byte for byte; or, for a template, the
    /// one of some directory, which `tenant` must name where it is given.
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

    /// What is before and after the one placeholder; nil without one. No URL has braces, so no issuer is mistaken.
    private static func parts(of text: String) -> (prefix: String, suffix: String)? {
        let pieces = text.split(separator: placeholder, omittingEmptySubsequences: false)
        return pieces.count == 2 ? (String(pieces[0]), String(pieces[1])) : nil
    }

    /// 8-4-4-4-12 hexadecimal digits.
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
