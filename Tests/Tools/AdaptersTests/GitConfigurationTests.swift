import RingbackBase
import Testing

@testable import Adapters

@Suite struct `git's configuration` {
    private static let value = GitConfiguration.value(quoted: "/usr/bin/ringback")

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
        let changes = try read([]).changes(for: [origin()], value: Self.value, in: read([]))
        #expect(changes == [add(key, ""), add(key, Self.value)])
    }

    @Test func `what is there already is not written again`() throws {
        for lines in [
            [(key, ""), (key, Self.value)], [("helper", "store"), (key, ""), (key, Self.value)],
            [("helper", "ringback")],
            [("https://*.example.org.helper", "ringback")], [("git.example.org.helper", "!ringback git-credential")],
            [("https://git.example.org:443/.helper", "/opt/bin/git-credential-ringback")],
        ] {
            let all = read(lines)
            #expect(try all.standing(for: origin()).isComplete, "\(lines)")
            #expect(try all.changes(for: [origin()], value: Self.value, in: all).isEmpty, "\(lines)")
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
            try all.changes(for: [origin()], value: Self.value, in: all) == [
                remove(key, ""), remove(key, Self.value), add(key, ""), add(key, Self.value),
            ])
    }

    @Test(
        arguments: [
            GitConfiguration.value(quoted: "'/home/a b/bin/ringback'"), "!'/home/a b/bin/ringback' git-credential",
            "!/usr/bin/ringback git-credential",
        ])
    func `a line for another path, or without the test for the program, is written anew`(former: String) throws {
        let all = read([(key, ""), (key, former)])
        #expect(
            try all.changes(for: [origin()], value: Self.value, in: all) == [
                remove(key, ""), remove(key, former), add(key, ""), add(key, Self.value),
            ])
    }

    @Test func `an origin with a path makes git name it`() throws {
        let team = try origin("https://git.example.org/team/*")
        let url = "https://git.example.org/team"
        let changes = read([]).changes(for: [team], value: Self.value, in: read([]))
        #expect(
            changes == [
                add("\(url).helper", ""), add("\(url).helper", Self.value), add("\(url).useHttpPath", "true"),
                add("\(url).ringbackPath", "true"),
            ])
        let written = read([
            ("\(url).helper", ""), ("\(url).helper", Self.value), ("\(url).usehttppath", "true"),
            ("\(url).ringbackpath", "true"),
        ])
        #expect(written.changes(for: [team], value: Self.value, in: written).isEmpty)
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
            for: [origin(), origin("https://git.example.org/team/*")], value: Self.value, in: all)
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
            read([]).changes(for: [mail], value: Self.value, in: read([])).first
                == add("imaps://mail.example.org.helper", ""))
    }
}
