internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Notebook: text notes in Documents, their database with a live log, an Inbox, a share extension
/// and a group shared with Reader. It contains the unusual names and the symbolic links.
enum NotebookApp {
  private static let id = "org.example.notebook"
  static let groupID = "group.org.example.library"

  static func bundle() throws(SampleError) -> ContainerPlan {
    let documents = PropertyList.members([
      "CFBundleTypeName": .string("Text"),
      "LSHandlerRank": .string("Owner"),
      "LSItemContentTypes": .array([.string("public.plain-text"), .string("com.adobe.pdf")]),
    ])
    let address = PropertyList.members([
      "CFBundleURLName": .string(id),
      "CFBundleURLSchemes": .array([.string("notebook")]),
    ])
    let app = BundlePlan(
      name: "Notebook", identifier: id, version: "3.2", build: "320",
      groups: [groupID],
      info: [
        .init("CFBundleDocumentTypes", .array([documents])),
        .init("CFBundleURLTypes", .array([address])),
      ])
    let share = BundlePlan(
      name: "Share", identifier: id + ".share", version: "3.2", build: "320", packageType: "XPC!",
      groups: [groupID],
      info: [
        .init(
          "NSExtension",
          .members([
            "NSExtensionAttributes": .members([
              "NSExtensionActivationRule": .members([
                "NSExtensionActivationSupportsText": .bool(true),
                "NSExtensionActivationSupportsImageWithMaxCount": .integer(4),
              ])
            ]),
            "NSExtensionPointIdentifier": .string("com.apple.share-services"),
          ]))
      ])
    var bundle = try ContainerPlan(
      .bundle, "6513270E-269E-4D37-B2A7-4DE452E6B438", of: id)
    bundle.add(try app.appEntries())
    bundle.add(try share.entries(in: "Notebook.app/PlugIns/Share.appex"))
    return bundle
  }

  static func data(day: Int) throws(SampleError) -> ContainerPlan {
    var data = try ContainerPlan(
      .data, "D23F0824-128B-4F33-8C5C-7FD0A6A3A450", of: id)
    data.add(notes(day: day))
    data.add(files())
    data.add(links(in: data.devicePath))
    data.add(try library(day: day))
    data.add(database(day: day), day: day)
    data.add([.file("Library/Application Support/Notebook/Notes.sqlite-shm", index, day: day)])
    addDays(to: &data, day: day)
    return data
  }

  static func shareExtension() throws(SampleError) -> ContainerPlan {
    var container = try ContainerPlan(
      .extension, "9531985D-5D9D-49F8-9818-E811892F902B", of: id + ".share")
    container.add([
      .directory("Documents"), .directory("SystemData"), .directory("tmp", permissions: 0o700),
      .prose("Library/Application Support/Pending/Clipping.txt", bytes: 800, day: -2),
      .prose("Library/Caches/Preview.txt", bytes: 600, day: -9),
      try .binaryPlist(
        "Library/Preferences/org.example.notebook.share.plist",
        .members(["lastNotebook": .string("Groceries")]), day: -2, permissions: 0o600),
    ])
    return container
  }

  // MARK: - Documents

  /// The notes, including four difficult names: with a newline, with bytes that are not UTF-8, and
  /// with a composed and a decomposed é, which are different files.
  private static func notes(day: Int) -> [SampleEntry] {
    let list = (0...day).map { "- \(SampleText.title("groceries \($0)"))\n" }.joined()
    return [
      .text("Documents/Notes/Groceries.md", "# Groceries\n\n" + list, day: day),
      .prose("Documents/Notes/Ideas.txt", bytes: 2_400, day: -14, permissions: 0o600),
      .prose("Documents/Notes/Recipes.md", bytes: 5_200, day: -95),
      .prose("Documents/Notes/Travel plans.md", bytes: 3_100, day: -31),
      .prose("Documents/Notes/Caf\u{e9}.md", bytes: 500, day: -3),
      .prose("Documents/Notes/Cafe\u{301}.md", bytes: 700, day: -3),
      .prose("Documents/Notes/Two\nlines.md", bytes: 400, day: -8),
      .prose(
        ByteString("Documents/Notes/Scan ".utf8 + [0xff, 0xfe] + ".txt".utf8), bytes: 300, day: -8),
    ]
  }

  private static func files() -> [SampleEntry] {
    [
      .directory("Documents/Empty folder"),
      .picture("Documents/Attachments/Sketch.png", width: 48, height: 36, day: -40),
      .noise(
        "Documents/Inbox/Itinerary.pdf", head: Array("%PDF-1.4\n".utf8), bytes: 6_000, day: -1,
        permissions: 0o444),
      .directory("SystemData"),
      .directory("tmp", permissions: 0o700),
      .prose("tmp/Export 1.md", bytes: 2_000, day: -1, permissions: 0o600),
    ]
  }

  /// The links: one into this container by its path on the device, one elsewhere, one relative.
  private static func links(in container: ByteString) -> [SampleEntry] {
    [
      .link("Documents/Latest.md", to: container.appending("Documents/Notes/Recipes.md"), day: -95),
      .link(
        "Library/Application Support/Notebook/Fonts", to: "/System/Library/Fonts", day: -120),
      .link(
        "Library/Application Support/Notebook/Recent", to: "../../../Documents/Notes", day: -120),
    ]
  }

  // MARK: - Library

  private static func library(day: Int) throws(SampleError) -> [SampleEntry] {
    let preferences = PropertyList.members([
      "fontSize": .integer(15),
      "lastOpened": .date(Timestamp.sample(day: day, of: "opened").sinceReferenceDate),
      "launchCount": .integer(41 + Int64(day)),
      "sortByTitle": .bool(false),
      "theme": .string("Paper"),
    ])
    let state = "Library/Saved Application State/\(id).savedState"
    let scenes = "Library/SplashBoard/Snapshots/\(id) - {DEFAULT GROUP}"
    return [
      try .binaryPlist(
        ByteString("Library/Preferences/\(id).plist"), preferences, day: day, permissions: 0o600),
      .noise(ByteString("Library/Preferences/\(id).plist.Xa9Bc2D"), bytes: 90, day: -60),
      try .xmlPlist(
        ByteString("Library/SyncedPreferences/\(id).plist"),
        .members(["theme": .string("Paper")]), day: -60),
      .noise(ByteString("\(state)/data.data"), bytes: 1_200, day: -1),
      try .binaryPlist(
        ByteString("\(state)/windows.plist"), .array([.members(["id": .integer(1)])]), day: -1),
      .noise(ByteString("\(scenes)/Light.ktx"), bytes: 4_000, day: -1),
      .noise(ByteString("\(scenes)/Dark.ktx"), bytes: 4_000, day: -1),
      .picture(
        "Library/Caches/org.example.notebook/Previews/1.png", width: 32, height: 24, day: -5),
      .picture(
        "Library/Caches/org.example.notebook/Previews/2.png", width: 32, height: 24, day: -4),
    ]
  }

  /// A database with sixty notes in its file. The log contains two transactions of the first day
  /// and one of each following day; each adds two notes and pins another.
  private static func database(day: Int) -> ContainerPlan.Database {
    func rows(_ count: Int, pinned: Int) -> [SQLiteRow] {
      (1...count).map { number in
        SQLiteRow(
          Int64(number),
          [
            .null, .text(SampleText.title("note \(number)")),
            .text(SampleText.text("note \(number)", bytes: 150 + 7 * (number % 40))),
            .integer(number <= pinned ? 1 : 0), .real(790_000_000.5 + 3_600 * Double(number)),
          ])
      }
    }
    return ContainerPlan.Database(
      path: "Library/Application Support/Notebook/Notes.sqlite", table: "notes",
      columns: """
        id INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, pinned INTEGER NOT NULL, \
        modified REAL NOT NULL
        """,
      rows: rows(60, pinned: 2),
      commits: (0...(day + 1)).map { rows(62 + 2 * $0, pinned: 3 + $0) })
  }

  /// The shared-memory index of the log, as after a crash: SQLite rebuilds it if no program has it
  /// open.
  private static let index = [UInt8](repeating: 0, count: 32 * 1024)

  // MARK: - Changes by day

  /// Each day adds a page to the journal; each of the first few days deletes a draft.
  private static func addDays(to data: inout ContainerPlan, day: Int) {
    for other in 0...ContainerPlan.lastDay {
      let page = ByteString("Documents/Journal/Day \(other).md")
      if other <= day {
        data.add([.prose(page, bytes: 900, day: other)])
      } else {
        data.expect(page)
      }
    }
    for draft in 1...4 {
      let path = ByteString("Documents/Drafts/Draft \(draft).md")
      if draft < 4 && draft <= day {
        data.remove(path, day: draft)
      } else {
        data.add([.prose(path, bytes: 1_100, day: -20 - draft)])
      }
    }
  }

  /// Returns the container of the group named in the entitlements of Notebook and Reader.
  static func group() throws(SampleError) -> ContainerPlan {
    var group = try ContainerPlan(
      .group, "0FD630F1-F29D-4DA9-953F-48F1A09F76B5", of: groupID)
    group.add([
      .directory("Documents"),
      .text("Shared/Tags.json", #"{"tags":["later","read","work"]}"# + "\n", day: -5),
      .picture("Library/Caches/Covers/1.png", width: 30, height: 40, day: -16),
      .picture("Library/Caches/Covers/2.png", width: 30, height: 40, day: -15),
      try .binaryPlist(
        ByteString("Library/Preferences/\(groupID).plist"),
        .members(["lastSync": .date(Timestamp.sample(day: -5, of: "sync").sinceReferenceDate)]),
        day: -5, permissions: 0o600),
    ])
    let rows = (1...18).map { number in
      SQLiteRow(
        Int64(number),
        [.null, .text(SampleText.text("highlight \(number)", bytes: 120)), .integer(-5)])
    }
    group.add(
      ContainerPlan.Database(
        path: "Shared/Highlights.sqlite", table: "highlights",
        columns: "id INTEGER PRIMARY KEY, text TEXT, offset INTEGER", rows: rows), day: -5)
    return group
  }
}
