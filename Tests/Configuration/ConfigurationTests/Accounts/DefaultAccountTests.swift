import Configuration
import Testing

@Suite struct `The default account` {
    private static let accounts = "[accounts.work]\nissuer = \"https://id.example.org\"\nclient_id = \"c\"\n"

    @Test func `is an account of the configuration`() throws {
        let folder = try Folder()
        try folder.write(Self.accounts)
        #expect(try folder.load().defaultAccount == nil)
        #expect(!folder.report().json.contains("default"))
        try folder.write("default = \"work\"\n" + Self.accounts)
        #expect(try folder.load().defaultAccount?.name == "work")
        #expect(
            folder.report().json.contains(
                #""default":{"account":"work","source":{"file":"\#(folder.path)/config.toml","line":1}}"#))
    }

    @Test func `may be in a drop-in, but not be named there`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        try folder.write(Self.accounts, to: "accounts.d/work.toml")
        try folder.write("default = \"work\"\n")
        #expect(try folder.load().defaultAccount?.name == "work")
        try folder.write("default = \"work\"\n" + Self.accounts, to: "accounts.d/work.toml")
        let errors = folder.report().errors
        #expect(errors.count == 1 && errors[0].key == "default" && errors[0].line == 1)
        #expect(errors.first?.message.contains("belongs in the user's own configuration") == true)
    }

    @Test func `that does not exist, or is no text, is a mistake in its line`() throws {
        let unknown = try mistakes(inFile: "\ndefault = \"wrok\"\n" + Self.accounts)
        #expect(unknown == ["2 default: names an account that does not exist; did you mean work?"])
        let number = try mistakes(inFile: "default = 1\n" + Self.accounts)
        #expect(number.first?.hasPrefix("1 default: must be a string") == true)
        // A mistake in the account itself is not reported twice.
        let broken = try mistakes(inFile: "default = \"work\"\n[accounts.work]\nissuer = 1\nclient_id = \"c\"\n")
        #expect(!broken.contains { $0.hasPrefix("1 ") }, "\(broken)")
    }
}
