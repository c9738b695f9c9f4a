import HTTPMessages
import Testing

@testable import Configuration

@Suite struct `The AWS role of an account` {
    private static let role = "role_arn = \"arn:aws:iam::123456789012:role/work\"\n"

    private func load(_ lines: String, provider: String = "issuer = \"https://id.example\"") throws -> AWSConfiguration?
    {
        let folder = try Folder()
        try folder.write("[accounts.work]\n\(provider)\nclient_id = \"a\"\n[accounts.work.aws]\n\(lines)\n")
        return try folder.load().accounts.first?.aws
    }

    private func mistakes(_ lines: String, provider: String = "issuer = \"https://id.example\"") -> [String] {
        do {
            _ = try load(lines, provider: provider)
            return []
        } catch let error as ConfigurationErrors {
            return error.errors.map { "\($0.key ?? ""): \($0.message)" }
        } catch {
            return ["\(error)"]
        }
    }

    @Test func `needs its name and a region`() throws {
        let found = try #require(try load(Self.role + "region = \"eu-central-1\""))
        #expect(found.roleARN == "arn:aws:iam::123456789012:role/work" && found.kind == .idToken)
        #expect(found.service.text == "https://sts.eu-central-1.amazonaws.com/")
        #expect(found.sessionName == "ringback" && found.duration == 3_600)
        let china = try load(Self.role + "region = \"cn-north-1\"")
        #expect(china?.service.text == "https://sts.cn-north-1.amazonaws.com.cn/")
    }

    @Test func `may have a service of its own, a name, a time and a kind`() throws {
        let lines =
            "endpoint = \"https://minio.example:9000\"\nsession_name = \"ada@example\"\nduration = \"12h\"\n"
            + "kind = \"access_token\""
        let found = try #require(try load(Self.role + lines))
        #expect(found.service.text == "https://minio.example:9000" && found.sessionName == "ada@example")
        #expect(found.duration == 43_200 && found.kind == .accessToken)
        #expect(try load(Self.role + "endpoint = \"http://127.0.0.1:5000/\"") != nil)
    }

    /// Lines that follow a good `role_arn`, and what is said of them.
    private static let lines: [(lines: String, said: String)] = [
        ("", "accounts.work.aws: needs region"),
        ("regoin = \"eu-central-1\"", "did you mean region?"),
        ("region = \"eu-central-1\"\nendpoint = \"https://a.example\"", "aws.endpoint: cannot be combined"),
        ("region = \"eu/central\"", "aws.region: is a name"),
        ("region = \"evil.example#\"", "aws.region: is a name"),
        ("endpoint = \"http://sts.example/\"", "aws.endpoint: is an https URL"),
        ("endpoint = \"https://sts.example/?a\"", "aws.endpoint: is an https URL"),
        ("endpoint = \"https:///\"", "aws.endpoint: is an https URL"),
        ("region = \"eu-central-1\"\nsession_name = \"a b\"", "aws.session_name: has 2 to 64"),
        ("region = \"eu-central-1\"\nsession_name = \"a\"", "aws.session_name: has 2 to 64"),
        ("region = \"eu-central-1\"\nduration = 899", "aws.duration: is from 900"),
        ("region = \"eu-central-1\"\nduration = \"13h\"", "aws.duration: is from 900"),
        ("region = \"eu-central-1\"\nduration = \"soon\"", "aws.duration: is from 900"),
        ("region = \"eu-central-1\"\nkind = \"refresh_token\"", "aws.kind: must be one of"),
    ]

    @Test(arguments: lines)
    func `is refused with a mistake in it`(lines: String, said: String) {
        let found = mistakes(Self.role + lines)
        #expect(found.count == 1 && found[0].contains(said), "\(found)")
    }

    @Test(arguments: [
        "", "role_arn = \"\"\n", "role_arn = \"arn:aws:iam::1:user/work-work\"\n",
        "role_arn = \"arn:aws:iam::1:role/a b c d e\"\n",
    ])
    func `is refused without the name of a role`(line: String) {
        let found = mistakes(line + "region = \"eu-central-1\"")
        #expect(found.count == 1 && found[0].contains("role"), "\(found)")
    }

    @Test func `of a provider without ID tokens needs the access token`() {
        let endpoints =
            "endpoints = { authorization = \"https://a.example/a\", token = \"https://a.example/t\" }"
        let lines = Self.role + "region = \"eu-central-1\"\n"
        #expect(
            mistakes(lines, provider: endpoints).map { $0.contains("aws.kind: must be \"access_token\"") } == [true])
        #expect(mistakes(lines + "kind = \"access_token\"", provider: endpoints) == [])
    }

    @Test func `is not for drop-ins`() throws {
        let folder = try Folder()
        try folder.makeDirectory("accounts.d")
        try folder.write("")
        try folder.write(
            "[accounts.work]\nissuer = \"https://id.example\"\nclient_id = \"a\"\n[accounts.work.aws]\n\(Self.role)"
                + "region = \"eu-central-1\"\n", to: "accounts.d/a.toml", mode: 0o644)
        let error = try #require(throws: ConfigurationErrors.self) { try folder.load() }
        #expect(error.errors.map(\.message).first?.contains("belongs in the user's own configuration") == true)
    }
}
