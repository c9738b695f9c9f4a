/// The profiles in AWS's `config`, and who gives the credentials of each.
public struct AWSProfiles: Sendable, Equatable {
    private static let key = "credential_process"
    private static let verb = "aws-credentials"
    /// Keys that AWS's tools heed before `credential_process`.
    private static let earlier = [
        "sso_session", "sso_start_url", "web_identity_token_file", "source_profile", "credential_source",
    ]

    private var file: SectionConfiguration

    /// - Parameter bytes: the file's; nil if there is no file.
    public init?(reading bytes: [UInt8]?) {
        guard let file = SectionConfiguration(reading: bytes) else { return nil }
        self.file = file
    }

    public var bytes: [UInt8] { file.bytes }

    /// The header of a profile in `config`.
    private static func section(_ profile: String) -> String { profile == "default" ? profile : "profile \(profile)" }

    public func has(_ profile: String) -> Bool { file.has(AWSProfiles.section(profile)) }

    /// The program that a profile names; nil if it names none.
    public func process(of profile: String) -> String? {
        file.value(of: AWSProfiles.key, in: AWSProfiles.section(profile))
    }

    /// What of a profile AWS's tools use in place of a program: the name of a key.
    public func earlierKey(of profile: String) -> String? {
        AWSProfiles.earlier.first { file.value(of: $0, in: AWSProfiles.section(profile)) != nil }
    }

    /// The line for a profile of an account's name; nil for a path that AWS's tools would split.
    public static func line(for account: String, running program: String) -> String? {
        let isPlain = program.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "/._+@~-".utf8.contains(byte)
            }
        }
        return isPlain ? "\(key) = \(program) \(verb) \(account)" : nil
    }

    /// The profiles that run Ringback for the account of their name, in the file's order.
    public var ours: [String] {
        file.sections.compactMap { section in
            guard section != "default" else { return section }
            return section.hasPrefix("profile ") ? String(section.dropFirst("profile ".count)) : nil
        }.filter(isOurs)
    }

    /// True if a profile of an account's name runs Ringback for it, whoever wrote that.
    public func isOurs(_ account: String) -> Bool {
        let words = process(of: account)?.split(separator: " ") ?? []
        return words.count == 3 && words[0].split(separator: "/").last == "ringback"
            && words[1] == AWSProfiles.verb[...] && words[2] == account[...]
    }

    /// The line of a profile of an account's name, if it is in the form that is written here.
    public func line(of account: String) -> String? {
        process(of: account).map { "\(AWSProfiles.key) = \($0)" }.flatMap {
            file.has($0, in: AWSProfiles.section(account)) ? $0 : nil
        }
    }

    public mutating func add(_ line: String, to profile: String) { file.add(line, to: AWSProfiles.section(profile)) }

    /// - Parameter isSectionOurs: the profile was added with the line.
    public mutating func remove(_ line: String, from profile: String, isSectionOurs: Bool) {
        file.remove(line, from: AWSProfiles.section(profile), isSectionOurs: isSectionOurs)
    }

    /// True if a file of the form of AWS's `credentials`, whose headers are the profiles' names, has keys for a profile.
    public static func hasKeys(for profile: String, in credentials: [UInt8]?) -> Bool {
        SectionConfiguration(reading: credentials)?.value(of: "aws_access_key_id", in: profile) != nil
    }
}
