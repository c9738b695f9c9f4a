import RingbackClient

let ringback = BrokerClient(application: "Listen to sessions")
for try await (event, session) in ringback.authStateChanges("work") {
    if let session {
        print(event.rawValue, session.user?.email ?? session.subject)
    } else if event == .initialSession {
        _ = try await ringback.session("work", signIn: .browser)
    }
}
