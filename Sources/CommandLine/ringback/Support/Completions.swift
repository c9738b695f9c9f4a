import ArgumentParser
import Glibc
import RingbackBase
import RingbackClient
import SchemeRegistration

/// What shells offer for an argument, found when the user asks for it. No daemon is started and nothing is printed on
/// standard error, where the user types.
enum Completions {
    static let accounts = CompletionKind.custom { _, _, _ in names("accounts", "name") }
    static let origins = CompletionKind.custom { _, _, _ in names("origins", "url") }
    static let schemes = CompletionKind.custom { _, _, _ in
        let registered = (try? SchemeDesktop())?.registry.registered ?? []
        return SchemeUse.all(report(), registered).map(\.scheme.name)
    }
    /// The presets of `account add`.
    static let presets = CompletionKind.list(["google", "microsoft", "github", "gitlab", "supabase"])
    /// Providers behind Supabase projects.
    static let upstreams = CompletionKind.list([
        "apple", "azure", "bitbucket", "discord", "facebook", "figma", "github", "gitlab", "google", "kakao",
        "keycloak", "linkedin_oidc", "notion", "slack_oidc", "spotify", "twitch", "twitter", "workos", "zoom",
    ])
    /// After `--`: first a program, then files. Before it, the `--` itself.
    static let command = CompletionKind.custom { words, index, prefix in
        guard let end = words.prefix(index).firstIndex(of: "--") else { return ["--"] }
        return end + 1 == index && !prefix.contains("/") ? programs(prefix) : files(prefix)
    }

    /// A configuration with mistakes gives nothing.
    private static func report() -> JSON? {
        Tool.run([Programs.path("ringbackd"), "--check-config", "--json"], within: .seconds(3))
            .flatMap { try? JSON(parsing: $0.output.utf8) }
    }

    private static func names(_ list: String, _ member: String) -> [String] {
        (report()?[list]?.array ?? []).compactMap { $0[member]?.string }
    }

    private static func programs(_ prefix: String) -> [String] {
        let places = (SocketPlace.variable("PATH") ?? "").split(separator: ":").map(String.init)
        var found: Set<String> = []
        for place in places {
            for name in Directory.names(in: place) where name.hasPrefix(prefix) && Tool.isInstalled("\(place)/\(name)")
            {
                found.insert(name)
            }
        }
        return found.sorted()
    }

    private static func files(_ prefix: String) -> [String] {
        let folder = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
        let start = prefix.dropFirst(folder.count)
        return Directory.names(in: folder.isEmpty ? "." : folder).filter {
            $0.hasPrefix(start) && (start.hasPrefix(".") || !$0.hasPrefix("."))
        }.map { folder + $0 }.sorted()
    }
}
