internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Podcast: offloaded, so its data exists without a bundle. It contains downloads that can be
/// repeated and exclusion marks of other kinds.
enum PodcastApp {
  private static let id = "com.example.podcast"
  private static let groupID = "group.com.example.podcast"

  static func data() throws(SampleError) -> ContainerPlan {
    var data = try ContainerPlan(
      .data, "A170B338-3926-4059-B28C-105D1FB17C23", of: id,
      recordedUUID: "92276658-1E27-41C0-8A6A-63EC24EDE6A4")
    let sound = [0, 0, 0, 0x18] + Array("ftypM4A ".utf8)
    let episodes: [SampleEntry] = (1...3).map { number in
      .noise(
        ByteString("Library/Application Support/Downloads/Episode \(number).m4a"), head: sound,
        bytes: 70_000, day: -20 * number)
    }
    data.add(episodes)
    data.add([
      .directory("Library/Application Support/Downloads", marks: [.notBackedUp]),
      .directory("SystemData"), .directory("tmp", permissions: 0o700),
      .prose("Documents/Show notes.md", bytes: 3_000, day: -22),
      .noise(
        "Library/Application Support/Account.token", bytes: 256, day: -22, permissions: 0o600,
        marks: [.notUnencrypted]),
      .noise(
        "Library/Application Support/Artwork.cache", bytes: 5_000, day: -22, marks: [.oldStyle]),
      .picture("Library/Caches/Artwork/Cover.png", width: 40, height: 40, day: -22),
      try .xmlPlist(
        ByteString("Library/Preferences/\(id).plist"),
        .members(["playbackRate": .real(1.25), "skipSilence": .bool(true)]), day: -22,
        permissions: 0o600),
    ])
    data.add(database(), day: -22)
    return data
  }

  private static func database() -> ContainerPlan.Database {
    let rows = (1...25).map { number in
      SQLiteRow(
        Int64(number),
        [
          .null, .text(SampleText.title("episode \(number)")), .integer(Int64(number) * 1_800),
          .real(Double(number) / 26),
        ])
    }
    return ContainerPlan.Database(
      path: "Documents/Episodes.sqlite", table: "episodes",
      columns: "id INTEGER PRIMARY KEY, title TEXT, seconds INTEGER, played REAL", rows: rows)
  }

  /// Returns the container of a group whose only app is offloaded, so that its members can only be
  /// guessed.
  static func group() throws(SampleError) -> ContainerPlan {
    var group = try ContainerPlan(
      .group, "0CB1E29C-658C-4A14-95E6-0AF593BD04CF", of: groupID)
    group.add([.prose("Queue.txt", bytes: 400, day: -22)])
    return group
  }
}
