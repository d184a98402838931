import RemoteStorage
import SystemIO
import Testing

/// The texts that specify repositories.
struct LocationTests {
  private func sftp(
    _ host: ByteString, _ path: ByteString, user: ByteString? = nil, port: Int? = nil
  ) -> RepositoryLocation {
    .sftp(SFTPLocation(user: user, host: host, port: port, path: path))
  }

  private func s3(_ bucket: String, _ prefix: ByteString = "") -> RepositoryLocation {
    .s3(S3Location(bucket: bucket, prefix: prefix))
  }

  @Test(arguments: [
    "/path", "path", "a/b", ".", "..", "./s3:x", "./sftp:alias/path", "../s3://x", "/s3:/x", "a:b",
    "2026-11-28T10:30", "/user@host:/x", "dir/user@host:x", "./user@host:x", ":x", "~/x", "C:x",
  ])
  func pathsAreOfThisHost(text: ByteString) throws {
    #expect(try RepositoryLocation(parsing: text) == .local(text))
    #expect(try RepositoryLocation(parsing: text).localPath == text)
  }

  @Test func bytesOfAPathAreKept() throws {
    let path = ByteString([0x2f, 0xff, 0x3a, 0x0a])
    #expect(try RepositoryLocation(parsing: path) == .local(path))
  }

  @Test func hostsAreParsed() throws {
    let table: [(ByteString, RepositoryLocation)] = [
      ("sftp://user@host:22/path", sftp("host", "/path", user: "user", port: 22)),
      ("sftp://host/srv/a b", sftp("host", "/srv/a b")),
      ("sftp:alias/path", sftp("alias", "/path")),
      ("sftp:me@alias/path/", sftp("alias", "/path", user: "me")),
      ("sftp:alias/~/backups/phone", sftp("alias", "backups/phone")),
      ("sftp:alias/~", sftp("alias", ".")),
      ("sftp:alias/~/", sftp("alias", ".")),
      ("sftp:alias/~x/y", sftp("alias", "/~x/y")),
      ("sftp:alias/a@b:c/%20", sftp("alias", "/a@b:c/%20")),
      ("sftp://host:22/a@b", sftp("host", "/a@b", port: 22)),
      ("sftp://a@corp@host/x", sftp("host", "/x", user: "a@corp")),
      ("sftp://u@[2001:db8::1]:2222/x", sftp("2001:db8::1", "/x", user: "u", port: 2222)),
      ("sftp://[fe80::1%eth0]/~/x", sftp("fe80::1%eth0", "x")),
      ("sftp://host/100%/x", sftp("host", "/100%/x")),
    ]
    for (text, location) in table {
      #expect(try RepositoryLocation(parsing: text) == location, "\(text)")
      #expect(location.localPath == nil)
      // The text of a location is parsed as the same location.
      #expect(try RepositoryLocation(parsing: location.text) == location, "\(location)")
    }
  }

  @Test func bucketsAreParsed() throws {
    let table: [(ByteString, RepositoryLocation)] = [
      ("s3://bucket", s3("bucket")), ("s3://bucket/", s3("bucket")),
      ("s3://my.bucket-1/a/b", s3("my.bucket-1", "a/b")),
      ("s3://bucket/é x/", s3("bucket", "é x")), ("s3://bucket/a:b@c", s3("bucket", "a:b@c")),
    ]
    for (text, location) in table {
      #expect(try RepositoryLocation(parsing: text) == location, "\(text)")
      #expect(try RepositoryLocation(parsing: location.text) == location, "\(location)")
    }
  }

  /// Invalid texts, each with a part of the hint.
  static let bad: [(text: ByteString, hint: String)] = [
    ("", "'sftp://user@host/path'"),
    (" s3://bucket", "'./…'"), ("\t\nsftp:alias/x", "omit it"), (" ssh://host/x", "omit it"),
    ("s3:/bucket", "write 's3://bucket'"), ("s3:bucket/x", "write 's3://bucket/x'"),
    ("s3:", "'s3://bucket/prefix'"), ("s3://", "'s3://bucket/prefix'"),
    ("s3:///bucket", "'s3://bucket/prefix'"), ("S3://bucket", "'s3:' in lower case"),
    ("s3:s3.example.com/bucket/x", "'s3://bucket/x' with '--s3-endpoint https://s3.example.com'"),
    ("s3:http://host:9000/bucket", "'s3://bucket' with '--s3-endpoint http://host:9000'"),
    ("s3:https://host", "'--s3-endpoint https://host'"),
    ("s3://host:9000/bucket", "'--s3-endpoint https://host:9000'"),
    ("s3://Bucket/x", "existing bucket"), ("s3://ab", "existing bucket"),
    ("s3://a..b", "existing bucket"), ("s3://-ab", "existing bucket"),
    ("s3://192.168.0.1/x", "existing bucket"), ("s3://a_b/x", "existing bucket"),
    ("s3://bucket/x?region=y", "'--s3-region'"), ("s3://bucket//x", "one '/'"),
    ("s3://bucket/a/../b", "without it"), ("s3://bucket/a/./b", "without it"),
    ("sftp:/x", "'sftp:alias/path'"), ("sftp:", "'sftp:alias/path'"),
    ("sftp://", "'sftp:alias/path'"), ("sftp:///x", "'sftp:alias/path'"),
    ("sftp://host", "'sftp:alias/path'"), ("sftp:alias", "'sftp:alias/path'"),
    ("sftp:alias/", "'sftp:alias/path'"), ("SFTP://h/x", "'sftp:' in lower case"),
    ("sftp:host:/srv/x", "write 'sftp:host/srv/x'"), ("sftp:host:x/y", "'sftp:host/~/x/y'"),
    ("sftp:u@host:/x", "write 'sftp:host/x'"), ("sftp:host:22/x", "'sftp://host:22/x'"),
    ("sftp://host//x", "one '/'"), ("sftp://host/a/../x", "without it"),
    ("sftp://host:0/x", "1 to 65535"), ("sftp://host:65536/x", "1 to 65535"),
    ("sftp://host:/x", "1 to 65535"), ("sftp://host:ssh/x", "1 to 65535"),
    ("sftp://::1/x", "'sftp://user@[2001:db8::1]/path'"),
    ("sftp:[::1]/x", "write 'sftp://[::1]/path'"), ("sftp://[::1/x", "[2001:db8::1]"),
    ("sftp://[host]/x", "[2001:db8::1]"), ("sftp://[::1]22/x", "[2001:db8::1]"),
    ("sftp://-oProxyCommand=x/y", "alias of ~/.ssh/config"), ("sftp:-x/y", "alias of"),
    ("sftp://-u@host/y", "name the user"), ("sftp://@host/y", "name the user"),
    ("sftp://a b@host/y", "name the user"), ("sftp://ho st/y", "alias of"),
    ("sftp://$(id)/y", "alias of"), ("sftp://host/a%20b", "as it is"),
    ("ssh://host/x", "'sftp://user@host/path'"), ("ssh:host", "'sftp://user@host/path'"),
    ("scp://host/x", "'sftp://user@host/path'"), ("rsync://host/x", "'sftp://user@host/path'"),
    ("user@host:/srv", "'sftp:user@host/srv'"), ("user@host:srv", "'sftp:user@host/~/srv'"),
    ("host:/srv", "'sftp:host/srv', or './host:/srv'"),
    ("file:///x", "the path alone"), ("local:/x", "the path alone"),
    ("http://host/x", "'--s3-endpoint'"), ("arn:aws:s3:::b", "'s3://bucket/prefix'"),
    ("b2:bucket:x", "'./…'"), ("rest:http://h/", "'./…'"), ("x://y", "'./…'"),
    ("sftp://host/a\u{1}b", "'sftp://user@host/path'"),
  ]

  @Test func aTypoIsRefusedWithTheRightForm() {
    for (text, hint) in Self.bad {
      let error = #expect(throws: OperationError.self, "\(text)") {
        try RepositoryLocation(parsing: text)
      }
      #expect(error?.code == .invalidValue && error?.kind == .usage)
      #expect(error?.hint?.contains(hint) == true, "\(text): \(error?.hint ?? "")")
      #expect(error?.description.hasPrefix("cannot use the repository '") == true)
    }
  }

  @Test(
    arguments: [
      "sftp://user:secret@host/x", "sftp:user:secret@host/x", "sftp://user:se/secret@host/x",
      "sftp://user:12/secret@host", "s3://key:secret@bucket/x", "s3://key:se/secret@bucket",
      "ssh://user:secret@host/x", "https://key:secret@host/bucket", "user:secret@host:/x",
      "s3:https://key:secret@host/bucket", "s3:key:secret@host/bucket", "SFTP://u:secret@host/x",
      "rest:https://user:secret@host/", "sftp://user:secret@[::1]/x", "sftp://u:secret@h@host/x",
    ] as [ByteString])
  func aPasswordIsRefusedAndNotShown(text: ByteString) throws {
    let location: RepositoryLocation
    do {
      location = try RepositoryLocation(parsing: text)
    } catch {
      #expect(!error.description.contains("secret"), "\(error)")
      #expect(error.hint?.contains("secret") == false, "\(error.hint ?? "")")
      #expect(error.parts.subject?.description.contains("secret") == false)
      return
    }
    // A port followed by a path with an '@' looks like a password of digits that contains a slash.
    #expect(location == sftp("user", "/secret@host", port: 12))
  }

  @Test func endpointsAreServersAlone() {
    for text in ["https://s3.example.com", "http://127.0.0.1:9000/", "http://[::1]:9000"] {
      #expect(S3Location.endpointFault(text) == nil, "\(text)")
    }
    for text in [
      "s3.example.com", "https://", "https://k:s@host", "https://host/bucket", "ftp://h",
      "https:///", "https://host?x", "https://:80", "https://ho st",
    ] {
      #expect(S3Location.endpointFault(text) != nil, "\(text)")
    }
  }
}
