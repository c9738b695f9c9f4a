import RingbackBase
import Testing

@testable import Adapters

@Suite struct `git's configuration` {
    private static let program = "/usr/bin/ringback"
    private static let value = GitConfiguration.value(quoted: program)
    private static let store = "!test -x /usr/bin/ringback || git credential-store"

    private func read(_ lines: [(String, String)]) -> GitConfiguration {
        GitConfiguration(listing: lines.flatMap { Array("credential.\($0.0)\n\($0.1)\0".utf8) })
    }

    private func origin(_ text: String = "https://git.example.org/*") throws -> OriginPattern {
        try OriginPattern(parsing: text)
    }

    private func add(_ key: String, _ value: String) -> GitConfiguration.Change {
        .add(key: "credential.\(key)", value: value)
    }

    private func remove(_ key: String, _ value: String) -> GitConfiguration.Change {
        .remove(key: "credential.\(key)", value: value)
    }

    private let key = "https://git.example.org.helper"

    @Test func `is read from the listing with zero bytes`() {
        let listing =
            "credential.helper\nstore\0credential.https://a.example.org.useHttpPath\ntrue\0credential.helper\0user.name\nada\0"
        #expect(
            GitConfiguration(listing: Array(listing.utf8)).entries == [
                .init(url: nil, name: "helper", value: "store"),
                .init(url: "https://a.example.org", name: "usehttppath", value: "true"),
                .init(url: nil, name: "helper", value: ""),
            ])
        #expect(GitConfiguration(listing: []).entries.isEmpty)
    }

    @Test func `a new server gets an empty value, then Ringback`() throws {
        let changes = try read([]).changes(for: [origin()], program: Self.program, in: read([]))
        #expect(changes == [add(key, ""), add(key, Self.value)])
    }

    @Test func `what is there already is not written again`() throws {
        for lines in [
            [(key, ""), (key, Self.value)], [("helper", "store"), (key, ""), (key, Self.value), (key, Self.store)],
            [("helper", "ringback")],
            [("https://*.example.org.helper", "ringback")], [("git.example.org.helper", "!ringback git-credential")],
            [("https://git.example.org:443/.helper", "/opt/bin/git-credential-ringback")],
        ] {
            let all = read(lines)
            #expect(try all.standing(for: origin()).isComplete, "\(lines)")
            #expect(try all.changes(for: [origin()], program: Self.program, in: all).isEmpty, "\(lines)")
        }
    }

    @Test func `a helper before or after Ringback is found`() throws {
        let first = try read([("helper", "cache"), (key, "ringback")]).standing(for: origin())
        #expect(first.isAsked && first.before == ["cache"] && first.after.isEmpty && !first.isComplete)
        let second = try read([(key, ""), (key, Self.value), ("helper", "store")]).standing(for: origin())
        #expect(second.isAsked && second.before.isEmpty && second.after == ["store"])
        let none = try read([(key, Self.value), ("helper", "")]).standing(for: origin())
        #expect(none == .init())
    }

    @Test func `a section of another server does not count`() throws {
        for url in [
            "http://git.example.org", "https://git.example.org:8443", "https://example.org",
            "https://a.git.example.org",
            "https://ada@git.example.org", "https://git.example.org/team", "https://*.org",
        ] {
            #expect(try read([("\(url).helper", "ringback")]).standing(for: origin()) == .init(), "\(url)")
        }
        let team = try origin("https://git.example.org/team/*")
        #expect(read([("https://git.example.org/team.helper", "ringback")]).standing(for: team).isAsked)
        #expect(!read([("https://git.example.org/te.helper", "ringback")]).standing(for: team).isAsked)
    }

    @Test func `lines that others follow are written anew, at the end`() throws {
        let all = read([(key, ""), (key, Self.value), ("helper", "store")])
        #expect(
            try all.changes(for: [origin()], program: Self.program, in: all) == [
                remove(key, ""), remove(key, Self.value), add(key, ""), add(key, Self.value), add(key, Self.store),
            ])
    }

    @Test func `another helper is asked again once Ringback is removed`() throws {
        let gone = "!test -x /usr/bin/ringback || "
        for (helper, fallback) in [
            ("store", Self.store), ("cache --timeout=60", gone + "git credential-cache --timeout=60"),
            ("/opt/bin/helper -x", gone + "/opt/bin/helper -x"),
            ("!/usr/bin/gh auth git-credential", gone + "/usr/bin/gh auth git-credential"),
        ] {
            let plain = read([("helper", helper), ("helper", helper)])
            let added = [add(key, ""), add(key, Self.value), add(key, fallback)]
            #expect(try plain.changes(for: [origin()], program: Self.program, in: read([])) == added, "\(helper)")
            let former = read([("helper", helper), (key, ""), (key, Self.value)])
            let removed = [remove(key, ""), remove(key, Self.value)]
            #expect(try former.changes(for: [origin()], program: Self.program, in: former) == removed + added)
            let all = read([("helper", helper), (key, ""), (key, Self.value), (key, fallback)])
            #expect(try all.standing(for: origin()).isComplete, "\(helper)")
            #expect(all.removals(of: nil) == removed + [remove(key, fallback)], "\(helper)")
            let quoted = try #require(GitConfiguration.fallback(to: helper, quoted: "'/a b/ringback'"))
            #expect(GitConfiguration.isFallback(quoted), "\(quoted)")
        }
        // Its arguments may have a password in them.
        let secret = read([("helper", "!f() { echo password=x; }; f")])
        #expect(
            try secret.changes(for: [origin()], program: Self.program, in: read([]))
                == [add(key, ""), add(key, Self.value)])
        for other in [
            "!test -x /usr/bin/ring || git credential-store", "!test -x ringback || x", "!test -x /a/ringback",
        ] {
            #expect(!GitConfiguration.isFallback(other), "\(other)")
        }
    }

    @Test(
        arguments: [
            GitConfiguration.value(quoted: "'/home/a b/bin/ringback'"), "!'/home/a b/bin/ringback' git-credential",
            "!/usr/bin/ringback git-credential",
        ])
    func `a line for another path, or without the test for the program, is written anew`(former: String) throws {
        let all = read([(key, ""), (key, former)])
        #expect(
            try all.changes(for: [origin()], program: Self.program, in: all) == [
                remove(key, ""), remove(key, former), add(key, ""), add(key, Self.value),
            ])
    }

    @Test func `an origin with a path makes git name it`() throws {
        let team = try origin("https://git.example.org/team/*")
        let url = "https://git.example.org/team"
        let changes = read([]).changes(for: [team], program: Self.program, in: read([]))
        #expect(
            changes == [
                add("\(url).helper", ""), add("\(url).helper", Self.value), add("\(url).useHttpPath", "true"),
                add("\(url).ringbackPath", "true"),
            ])
        let written = read([
            ("\(url).helper", ""), ("\(url).helper", Self.value), ("\(url).usehttppath", "true"),
            ("\(url).ringbackpath", "true"),
        ])
        #expect(written.changes(for: [team], program: Self.program, in: written).isEmpty)
        #expect(
            written.removals(of: nil) == [
                remove("\(url).helper", ""), remove("\(url).helper", Self.value), remove("\(url).useHttpPath", "true"),
                .removeAll(key: "credential.\(url).ringbackPath"),
            ])
    }

    @Test func `useHttpPath of the user stays, and ours goes without a helper too`() throws {
        let url = "https://git.example.org/team"
        let own = read([("\(url).usehttppath", "true"), ("\(url).helper", ""), ("\(url).helper", Self.value)])
        #expect(own.removals(of: nil) == [remove("\(url).helper", ""), remove("\(url).helper", Self.value)])
        let all = read([(key, ""), (key, Self.value)])
        let changes = try all.changes(
            for: [origin(), origin("https://git.example.org/team/*")], program: Self.program, in: all)
        #expect(changes == [add("\(url).useHttpPath", "true"), add("\(url).ringbackPath", "true")])
        let marked = read([("\(url).usehttppath", "true"), ("\(url).ringbackpath", "true")])
        let removals = [
            remove("\(url).useHttpPath", "true"), .removeAll(key: "credential.\(url).ringbackPath"),
        ]
        #expect(marked.removals(of: nil) == removals)
        let changed = read([("\(url).usehttppath", "false"), ("\(url).ringbackpath", "true")])
        #expect(changed.removals(of: nil) == Array(removals.dropFirst()))
    }

    @Test func `of several empty values only the one before ours is removed`() {
        func removals(_ values: String...) -> [GitConfiguration.Change] {
            read(values.map { (key, $0) }).removals(of: nil)
        }
        let all = GitConfiguration.Change.removeAll(key: "credential.\(key)")
        #expect(removals("", "store", "", Self.value) == [all, add(key, ""), add(key, "store")])
        #expect(removals("", "store", "", Self.value, "cache") == [all] + ["", "store", "cache"].map { add(key, $0) })
        #expect(removals("", "store", Self.value) == [remove(key, Self.value)])
        #expect(removals("store", "", Self.value) == [remove(key, ""), remove(key, Self.value)])
        #expect(removals("", "", Self.value) == [all, add(key, "")])
        #expect(removals("", "store").isEmpty)
    }

    @Test func `only what is still ours is removed`() throws {
        let other = "https://other.example.org.helper"
        let all = read([
            ("helper", "store"), (key, ""), (key, Self.value), (other, "ringback"),
            ("https://x.example.org.helper", ""),
            ("https://x.example.org.helper", "cache"),
        ])
        #expect(all.removals(of: nil) == [remove(key, ""), remove(key, Self.value)])
        #expect(try all.removals(of: [origin()]) == [remove(key, ""), remove(key, Self.value)])
        #expect(try all.removals(of: [origin("https://other.example.org")]).isEmpty)
    }

    @Test func `mail servers are asked for, other protocols are not`() throws {
        #expect(try GitConfiguration.isUsable(origin("smtp://mail.example.org:465")))
        #expect(try !GitConfiguration.isUsable(origin("smtps://mail.example.org")))
        let mail = try origin("imaps://mail.example.org")
        #expect(
            read([]).changes(for: [mail], program: Self.program, in: read([])).first
                == add("imaps://mail.example.org.helper", ""))
    }
}
