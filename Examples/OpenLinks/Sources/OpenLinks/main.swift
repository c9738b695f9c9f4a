import RingbackClient

// An app of the scheme `swisscoin`: `ringback scheme register swisscoin` sends its links here.
let ringback = BrokerClient(application: "Open links")
for try await link in ringback.deepLinks("swisscoin") {
    // Anybody may have written it: it is a wish of the person's at best.
    print("open", link.url)
    try await ringback.acknowledge(link)
}
print("another program listens now")
