internal import Codecs
internal import SandboxModel
internal import SystemIO

/// The groups: one named in the entitlements of Notebook and Reader, and one whose only app is
/// offloaded, so that its members can only be guessed.
enum SampleGroups {
  static let libraryID = "group.org.example.library"
  private static let podcastID = "group.com.example.podcast"

  static func library() throws(SampleError) -> ContainerPlan {
    var group = try ContainerPlan(
      .group, "0FD630F1-F29D-4DA9-953F-48F1A09F76B5", of: libraryID)
    group.add([
      .directory("Documents"),
      .text("Shared/Tags.json", #"{"tags":["later","read","work"]}"# + "\n", day: -5),
      .picture("Library/Caches/Covers/1.png", width: 30, height: 40, day: -16),
      .picture("Library/Caches/Covers/2.png", width: 30, height: 40, day: -15),
      try .binaryPlist(
        ByteString("Library/Preferences/\(libraryID).plist"),
        .members(["lastSync": .date(Timestamp.sample(day: -5, of: "sync").sinceReferenceDate)]),
        day: -5, permissions: 0o600),
    ])
    let rows = (1...18).map { number in
      SQLiteRow(
        Int64(number),
        [.null, .text(SampleText.text("highlight \(number)", bytes: 120)), .integer(-5)])
    }
    group.add(
      DatabasePlan(
        path: "Shared/Highlights.sqlite", table: "highlights",
        columns: "id INTEGER PRIMARY KEY, text TEXT, offset INTEGER", rows: rows), day: -5)
    return group
  }

  static func podcast() throws(SampleError) -> ContainerPlan {
    var group = try ContainerPlan(
      .group, "0CB1E29C-658C-4A14-95E6-0AF593BD04CF", of: podcastID)
    group.add([.prose("Queue.txt", bytes: 400, day: -22)])
    return group
  }
}
