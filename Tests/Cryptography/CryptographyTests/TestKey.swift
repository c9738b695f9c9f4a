import TestSupport

/// Keys for tests and for nothing else: everybody has them.
enum TestKey {
    static let rsa = TestKeyFile.rsa
    static let rsaOlder = """
        -----BEGIN RSA PRIVATE KEY-----
        MIIEpAIBAAKCAQEAlP4UoOOFQB6BjInF8PChazOuXAhikaaifjTU6v+keCkf5o4V
        ay+u2tpAVf2DdkEeFR5NX2tjK6iM2fG31AcdRZF4u9QYUhYyaQYyuLyhaSzNx7bv
        QjLLDqegF37ymE+Fg6zIDxqqBFtPUbq0TMzCPXgzq0f2ZtdNRTSj8YblnJHumcCR
        zoBvCif82TNJjd3PdLWu/Nj4wmt7j6sOcU1Ws8o7YGsx2NYqSWE5zby/zdDypFnD
        kjd1qLlyVMdAJUvgLTD0dgGOBmZWz04zGSJSISA3m6swYIPsCjPO8yZPO6xq1Hbo
        rarci70KWzKmCdpYeAOTK2knCx22iw7f358lcQIDAQABAoIBAAL0mmbHCp5cbeNn
        0Hw51BQ5AHQpMwDarwnykk0WJ1Ozn6M6exfpqHXv4ENgacnIILCogv5cgPQAJilK
        MA8EeYb8W9pweoTG1abzZAukdhh3W+k34pLpPbxM6eTgwZnQ59gWRA/sznXIif19
        XFIdb0aKQSP3Dl8JAG/fRjeuXl/FdiLD5ePbqb2zPt2e1V3JCbtEZqSeA9WzW9qw
        kCQzbn1oEQBSoYG1ikbM5b49l9piLXKsCaEqtN8tsBfSaWTgEfq36YrOnYefS/mo
        MnGpyO96CVo7bleXZoZW6bEauK+6yS1zCHUPVMX8WnmAkHtf8f94pjvooTSKnBVP
        id690gECgYEAxmIkJS6x0NHbO2x9NOSd62iSFumvW0JcfYY2/KV49iKJaMBmij9b
        xOCIk4pXrCiEyXo/Tg5nDUP7tZUscsIxUNyU6Hx8kVu3p+y0q11ZGTLctmv6+0Z4
        bCHnoxpEE4gej+MYc6RT4OLpa1FL4EndfAboCYQw+jj+gn7IPdvUC3ECgYEAwEO3
        BvNp7FibBKyxB26KiE8MoBuqJdMnSfCkMCsZj6SC9fxePNOa+yIHC1RwrCcHZSTW
        rgHPOhQVHtEWrxZFX5dTPNZd8VvL99UjaWT06kJIxedPPhgW6AS7YCm4U4vpvJZX
        oOT3uRmEj8TWH6CNZH9BvaMHZgd8mMSFDb+rugECgYBMEpg/td8z7zU9XUXKAZzZ
        B7l1ldjLivACpnPxf9aZs/azN4xamR8sqNlWkmc6OjNpOzqJSRaVTKt6HyDzRKo6
        kst7NzlhWCVd/HPvfpVLB2kBfvi4YHaPKJU1wz21q63kiTX4KlyL0RenMn6BHHIV
        PGTAOXO6kB5wlgNdTS3L0QKBgQCIAV6/tAECB8vhCqhQMYod0o2D1Q4Po8bvLyN2
        T4bNbfqWN+gR7z562B9TjHAH17QLgHu8q9sDoqEuI4qAYKjCbjGbn6jky6MFtehO
        7fOyoyEHnhEYQ8Iwbuh9pgWWVCsMFO34CwCSF9MGQJ+Xz+M1bC/9Dg51xmYFSz8z
        8ppwAQKBgQC3zBSrxo0kCkQYYcn7gSAFXvX0+BLCbP0EjpWtDxwAvNXh/MvHauGw
        yMcfLVS50AMBHmy4Vt1DYTyTSU8EFFMxN4o5tVAjawlput0vb1XiHn2FZ9CmgSKp
        zXfr9Z7GGNm2Ql6HILhFwkqhoyVpl0B70GrPYY9NxB+75tQNnL06EQ==
        -----END RSA PRIVATE KEY-----
        """
    static let p256 = TestKeyFile.p256
    static let p384Older = """
        -----BEGIN EC PARAMETERS-----
        BgUrgQQAIg==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MIGkAgEBBDAtiRZ+4MgzcbyrmUgcta6IfYq7HTQNva2LVSwVcEYGA6aI4KdIoGpR
        BBOni7d52qCgBwYFK4EEACKhZANiAARKFhSGqBRRQxpLYsIzTJk0U8TmKQ5nrPFW
        Oixc6s5PQ3YzwgDDe6zQqJoqeu83gDijN5P0bZwWB3IZmrdtsVGd5SE0ODA9ZFsv
        Njo8KCknbUVxAFMlfJUx9fbTUzjJTV4=
        -----END EC PRIVATE KEY-----
        """
    static let ed25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIBGvnyNnV0kWn5GIcJ4RarWzs73o+708Ii2vczceGitS
        -----END PRIVATE KEY-----
        """
    static let encrypted = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjYgLKqzQzR9wICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEAqlIOsnR12CjjpWs6LSDa8EgZDW
        tFI4NWZS7FJ486MWFj5CTNQr2CTgMcEWO6X5FWFMewXpjrdEUd6rq7XqDU9vqsXS
        nYkKDjql3hBztIfz7l8QndmW3tkFQN0JrXKpiwP24UyxXCI8N/2QE2+v37zEdwHu
        7L+t500cef26KSTizf3ql9CQgQKCcwDAsSC7ztojv9H0pXTz3s7JoEmngmKXUlU=
        -----END ENCRYPTED PRIVATE KEY-----
        """
    static let secp256k1 = """
        -----BEGIN PRIVATE KEY-----
        MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgP65btF3rkqth1sHJEFkL
        aIHNwP1R4L7Y07vAieiwPIihRANCAAS/4BVuReJxzLfm+bXrHr67g1WjjGrl7Y2I
        o9+BcdEBhNHs2I9gpZGzG3kHPmGwk5VKW08Zv+KEFRnhdyzJRzEi
        -----END PRIVATE KEY-----
        """
}
