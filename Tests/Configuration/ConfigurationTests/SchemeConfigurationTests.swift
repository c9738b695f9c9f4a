import Configuration
import RingbackBase
import Testing

@Suite struct `Schemes of apps in the configuration` {
    private static let two = """
        [schemes.swisscoin]
        command = ["/usr/bin/swisscoin", "--open={url}"]

        [schemes."org.example.notes"]
        command = ["~/bin/notes"]

        [schemes.silent]

        """

    @Test func `are read with their programs`() throws {
        let folder = try Folder()
        try folder.write(Self.two)
        let configuration = try folder.load()
        #expect(configuration.schemes.map(\.name) == ["org.example.notes", "silent", "swisscoin"])
        let coin = try #require(configuration.scheme("swisscoin"))
        #expect(coin.command == ["/usr/bin/swisscoin", "--open={url}"] && coin.takesURL)
        #expect(coin.source.description == "\(folder.path)/config.toml:1")
        let notes = try #require(configuration.scheme("org.example.notes"))
        #expect(notes.command == ["\(folder.path)/bin/notes"] && !notes.takesURL)
        #expect(configuration.scheme("silent")?.command == nil && configuration.scheme("silent")?.takesURL == false)
        #expect(configuration.scheme("other") == nil)
    }

    @Test func `may come with a package, and the person's own file wins as a whole`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        try folder.write(Self.two, to: "accounts.d/coin.toml")
        try folder.write("[schemes.swisscoin]\n")
        let configuration = try folder.load()
        #expect(configuration.schemes.count == 3)
        #expect(configuration.scheme("swisscoin")?.command == nil)
    }

    @Test func `may have a name for people, with the scheme beside it`() throws {
        let folder = try Folder()
        try folder.write("[schemes.swisscoin]\ndisplay_name = \"Swisscoin\"\n")
        #expect(try folder.load().scheme("swisscoin")?.displayName == "Swisscoin")
        let json = try JSON(parsing: Array(folder.report().json.utf8))
        #expect(json["schemes"]?.array?.first?["label"] == "Swisscoin (swisscoin:)")
        try folder.write("[schemes.swisscoin]\ndisplay_name = \"two\\nlines\"\n")
        #expect(throws: (any Error).self) { try folder.load() }
    }

    @Test func `are in the report`() throws {
        let folder = try Folder()
        try folder.write(Self.two)
        let report = folder.report()
        let json = try JSON(parsing: Array(report.json.utf8))
        #expect(json["schemes"]?.array?.map { $0["name"]?.string } == ["org.example.notes", "silent", "swisscoin"])
        #expect(
            json["schemes"]?.array?.map { $0["notes"]?.array?.compactMap(\.string) ?? [] } == [
                [
                    "The desktop must open org.example.notes: links with Ringback.",
                    "If no app listens for its links, \(folder.path)/bin/notes is started.",
                    "[schemes.org.example.notes] starts \(folder.path)/bin/notes, which does not exist or is not "
                        + "executable.",
                ],
                [
                    "The desktop must open silent: links with Ringback.",
                    "Its links are kept for a minute for an app that listens.",
                    "Another app may claim the scheme silent. Use a reversed domain name of yours, such as "
                        + "org.example.silent.",
                ],
                [
                    "The desktop must open swisscoin: links with Ringback.",
                    "If no app listens for its links, /usr/bin/swisscoin is started.",
                    "[schemes.swisscoin] starts /usr/bin/swisscoin, which does not exist or is not executable.",
                    "Another app may claim the scheme swisscoin. Use a reversed domain name of yours, such as "
                        + "org.example.swisscoin.",
                ],
            ])
        #expect(json["schemes"]?.array?.last?["command"] == ["/usr/bin/swisscoin", "--open={url}"])
        #expect(json["schemes"]?.array?.dropFirst().first?["command"] == nil)
    }
}
