internal import Codecs
internal import SandboxModel
internal import SystemIO

/// Darkroom: pictures, some of them hard-linked, directories and files with exclusion marks, a
/// sparse file, and a directory outside the standard ones.
enum DarkroomApp {
  private static let id = "org.example.darkroom"
  private static let roll = "Documents/DCIM/100APPLE"

  static func bundle() throws(SampleError) -> ContainerPlan {
    let pictures = PropertyList.members([
      "CFBundleTypeName": .string("Picture"),
      "LSHandlerRank": .string("Alternate"),
      "LSItemContentTypes": .array([.string("public.image")]),
    ])
    let app = BundlePlan(
      name: "Darkroom", identifier: id, version: "1.10.2", build: "1102",
      info: [.init("CFBundleDocumentTypes", .array([pictures]))], day: -80)
    var bundle = try ContainerPlan(
      .bundle, "36F675CC-81E7-4EF5-A8E2-5D940ED90475", of: id)
    bundle.add(try app.appEntries())
    return bundle
  }

  static func data(day: Int) throws(SampleError) -> ContainerPlan {
    var data = try ContainerPlan(
      .data, "6B0D549B-6F03-475A-9600-A35A099950D8", of: id)
    data.add(pictures())
    data.add(marked())
    data.add(caches())
    data.add([
      .directory("Documents/Inbox"), .directory("SystemData"),
      .directory("tmp", permissions: 0o700),
      .noise("Documents/.DS_Store", head: [0, 0, 0, 1] + Array("Bud1".utf8), bytes: 600, day: -30),
      .picture("Darkroom Exports/Print.png", width: 60, height: 45, day: -12),
      try .xmlPlist(
        ByteString("Library/Preferences/\(id).plist"),
        .members(["autoEnhance": .bool(true), "quality": .real(0.85)]), day: -30,
        permissions: 0o600),
    ])
    data.add(database(day: day), day: day)
    addDays(to: &data, day: day)
    return data
  }

  private static func pictures() -> [SampleEntry] {
    let files: [SampleEntry] = (1...8).map { number in
      .picture(
        ByteString("\(roll)/IMG_000\(number).PNG"), width: 72 + 4 * number, height: 60,
        day: -100 + 10 * number)
    }
    return files + [
      otherName("Documents/Albums/Favourites/IMG_0003.PNG", of: 3),
      otherName("Documents/Albums/Trip/IMG_0003.PNG", of: 3),
      otherName("tmp/Share/IMG_0005.PNG", of: 5),
    ]
  }

  private static func otherName(_ path: ByteString, of number: Int) -> SampleEntry {
    let file = ByteString("\(roll)/IMG_000\(number).PNG")
    return SampleEntry(path, .hardLink(file), day: -10, permissions: 0o644)
  }

  /// A marked directory, which covers its content; a marked file of the user; a sparse map file.
  private static func marked() -> [SampleEntry] {
    let map: [SampleEntry.Piece] = [
      .init(offset: 0, bytes: Array("MAP1 sample of a map with holes\n".utf8)),
      .init(offset: 262_144, bytes: Array(SampleText.text("map", bytes: 5_000).utf8)),
      .init(offset: 786_432, bytes: Array("END\n".utf8)),
    ]
    return [
      .directory("Library/Application Support/Models", marks: [.notBackedUp]),
      .noise("Library/Application Support/Models/Faces.model", bytes: 60_000, day: -70),
      .prose("Library/Application Support/Models/Labels.txt", bytes: 1_500, day: -70),
      .noise("Documents/Originals/IMG_0001.DNG", bytes: 40_000, day: -90, marks: [.notBackedUp]),
      SampleEntry(
        "Library/Application Support/World.map", .sparse(size: 1_048_576, pieces: map), day: -50,
        permissions: 0o644),
    ]
  }

  /// A directory of thumbnails with a cache directory tag.
  private static func caches() -> [SampleEntry] {
    let files: [SampleEntry] = (1...8).map { number in
      .picture(
        ByteString("Library/Caches/Thumbnails/IMG_000\(number).png"), width: 24, height: 18,
        day: -100 + 10 * number)
    }
    return files + [.text("Library/Caches/Thumbnails/CACHEDIR.TAG", SampleText.cacheTag, day: -100)]
  }

  /// One row for each picture. Each day adds one and marks another as a favourite in place.
  private static func database(day: Int) -> ContainerPlan.Database {
    let rows = (1...(40 + day)).map { number in
      SQLiteRow(
        Int64(number),
        [
          .null, .text("IMG_\(number).PNG"), .integer(number % 5 == 0 || number <= day ? 1 : 0),
          .integer(Int64(number) * 86_400 - 2_000_000), .blob(thumbnail(number)),
        ])
    }
    return ContainerPlan.Database(
      path: "Library/Application Support/Photos.sqlite", table: "photos",
      columns: """
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, favourite INTEGER NOT NULL, taken INTEGER, \
        thumbnail BLOB
        """,
      rows: rows)
  }

  private static func thumbnail(_ number: Int) -> [UInt8] {
    var random = SampleRandom("thumbnail \(number)")
    return random.bytes(300)
  }

  private static func addDays(to data: inout ContainerPlan, day: Int) {
    for other in 1...ContainerPlan.lastDay {
      let path = ByteString("\(roll)/IMG_\(1_000 + other).PNG")
      if other <= day {
        data.add([.picture(path, width: 56, height: 42, day: other)])
      } else {
        data.expect(path)
      }
    }
  }
}
