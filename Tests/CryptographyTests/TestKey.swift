/// Keys for tests and for nothing else: everybody has them.
enum TestKey {
    static let rsa = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQCU/hSg44VAHoGM
        icXw8KFrM65cCGKRpqJ+NNTq/6R4KR/mjhVrL67a2kBV/YN2QR4VHk1fa2MrqIzZ
        8bfUBx1FkXi71BhSFjJpBjK4vKFpLM3Htu9CMssOp6AXfvKYT4WDrMgPGqoEW09R
        urRMzMI9eDOrR/Zm101FNKPxhuWcke6ZwJHOgG8KJ/zZM0mN3c90ta782PjCa3uP
        qw5xTVazyjtgazHY1ipJYTnNvL/N0PKkWcOSN3WouXJUx0AlS+AtMPR2AY4GZlbP
        TjMZIlIhIDebqzBgg+wKM87zJk87rGrUduitqtyLvQpbMqYJ2lh4A5MraScLHbaL
        Dt/fnyVxAgMBAAECggEAAvSaZscKnlxt42fQfDnUFDkAdCkzANqvCfKSTRYnU7Of
        ozp7F+mode/gQ2BpycggsKiC/lyA9AAmKUowDwR5hvxb2nB6hMbVpvNkC6R2GHdb
        6Tfikuk9vEzp5ODBmdDn2BZED+zOdciJ/X1cUh1vRopBI/cOXwkAb99GN65eX8V2
        IsPl49upvbM+3Z7VXckJu0RmpJ4D1bNb2rCQJDNufWgRAFKhgbWKRszlvj2X2mIt
        cqwJoSq03y2wF9JpZOAR+rfpis6dh59L+agycanI73oJWjtuV5dmhlbpsRq4r7rJ
        LXMIdQ9UxfxaeYCQe1/x/3imO+ihNIqcFU+J3r3SAQKBgQDGYiQlLrHQ0ds7bH00
        5J3raJIW6a9bQlx9hjb8pXj2IolowGaKP1vE4IiTilesKITJej9ODmcNQ/u1lSxy
        wjFQ3JTofHyRW7en7LSrXVkZMty2a/r7RnhsIeejGkQTiB6P4xhzpFPg4ulrUUvg
        Sd18BugJhDD6OP6Cfsg929QLcQKBgQDAQ7cG82nsWJsErLEHboqITwygG6ol0ydJ
        8KQwKxmPpIL1/F4805r7IgcLVHCsJwdlJNauAc86FBUe0RavFkVfl1M81l3xW8v3
        1SNpZPTqQkjF508+GBboBLtgKbhTi+m8lleg5Pe5GYSPxNYfoI1kf0G9owdmB3yY
        xIUNv6u6AQKBgEwSmD+13zPvNT1dRcoBnNkHuXWV2MuK8AKmc/F/1pmz9rM3jFqZ
        Hyyo2VaSZzo6M2k7OolJFpVMq3ofIPNEqjqSy3s3OWFYJV38c+9+lUsHaQF++Lhg
        do8olTXDPbWrreSJNfgqXIvRF6cyfoEcchU8ZMA5c7qQHnCWA11NLcvRAoGBAIgB
        Xr+0AQIHy+EKqFAxih3SjYPVDg+jxu8vI3ZPhs1t+pY36BHvPnrYH1OMcAfXtAuA
        e7yr2wOioS4jioBgqMJuMZufqOTLowW16E7t87KjIQeeERhDwjBu6H2mBZZUKwwU
        7fgLAJIX0wZAn5fP4zVsL/0ODnXGZgVLPzPymnABAoGBALfMFKvGjSQKRBhhyfuB
        IAVe9fT4EsJs/QSOla0PHAC81eH8y8dq4bDIxx8tVLnQAwEebLhW3UNhPJNJTwQU
        UzE3ijm1UCNrCWm63S9vVeIefYVn0KaBIqnNd+v1nsYY2bZCXocguEXCSqGjJWmX
        QHvQas9hj03EH7vm1A2cvToR
        -----END PRIVATE KEY-----
        """
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
    static let p256 = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgZcmJxVY/3gZUq4RZ
        /fvlePIPCCCIDaMG6CZ5y+r2HbehRANCAATPWPkqlincnoPM1bbFBQOuQX3I0J99
        CW4FdyDKIsiJFQy5bE0vDTff97T3diMSFDpRX5gwkYYK2zmouMSHp+3w
        -----END PRIVATE KEY-----
        """
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
