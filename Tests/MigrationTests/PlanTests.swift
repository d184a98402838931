import Migration
import SystemIO
import TestSupport
import Testing

struct PlanTests {
  private static let route = makeRoute(
    "firefox", from: .deb, to: "org.mozilla.firefox", as: .flatpak)
  private static let target: ByteString = ".var/app/org.mozilla.firefox"

  private func directory(_ path: ByteString) -> MigrationEntry {
    MigrationEntry(path, kind: .directory)
  }

  private func file(_ path: ByteString, size: UInt64 = 1, at time: Int64 = 0) -> MigrationEntry {
    MigrationEntry(path, kind: .file, size: size, modified: Timestamp(seconds: time))
  }

  private func plan(
    _ source: [MigrationEntry], _ present: [MigrationEntry] = [],
    route: MigrationRoute = Self.route
  ) -> MigrationPlan {
    let known = Dictionary(uniqueKeysWithValues: present.map { ($0.path, $0) })
    return MigrationPlanner(route) { known[$0] }.plan(source)
  }

  private static let profile: [ByteString] = [
    ".mozilla", ".mozilla/firefox", ".mozilla/firefox/x",
  ]

  @Test func intoAnEmptyTargetEverythingWithAPlaceMoves() {
    let plan = plan(
      Self.profile.map(directory) + [
        file(".mozilla/firefox/x/places.sqlite", size: 10), file(".mozilla/firefox/x/lock"),
        file(".mozilla/firefox/profiles.ini", size: 5),
        file(".mozilla/firefox/x/extensions.json", size: 7),
      ])
    #expect(plan.moves.map(\.destination).first == Self.target.appending(".mozilla"))
    #expect(plan.files == 3)
    #expect(plan.bytes == 22)
    #expect(plan.skipped.map(\.path) == [".mozilla/firefox/x/lock"])
    #expect(plan.skipped.first?.reason == "locks of the running app")
    #expect(plan.rewrites.map(\.rule) == [.mozillaProfiles, .mozillaExtensions])
    #expect(plan.conflicts.isEmpty)
    #expect(plan.withoutPlace.isEmpty)
    #expect(plan.notes.count == 1)
  }

  @Test func theSameEntriesAreThereAlready() {
    let old = file(".mozilla/firefox/x/a", size: 4, at: 9)
    let plan = plan(
      Self.profile.map(directory) + [old],
      ([".var", ".var/app", Self.target] + Self.profile.map { Self.target.appending($0) })
        .map(directory) + [file(Self.target.appending(old.path), size: 4, at: 9)])
    #expect(plan.present.map(\.entry) == [old])
    #expect(plan.moves.isEmpty)
    #expect(plan.conflicts.isEmpty)
  }

  /// The space that copies need: holes need none, and a hard-linked file counts once.
  @Test func holesAndHardLinksNeedNoRoom() {
    let inode = FileIdentity(device: 1, inode: 2)
    let names: [ByteString] = [".mozilla/firefox/x/a", ".mozilla/firefox/x/b"]
    let linked = names.map {
      MigrationEntry($0, kind: .file, size: 100, allocated: 4096, inode: inode)
    }
    let sparse = MigrationEntry(
      ".mozilla/firefox/x/c", kind: .file, size: 1 << 40, allocated: 8192)
    let plan = plan(Self.profile.map(directory) + linked + [sparse])
    #expect(plan.files == 3)
    #expect(plan.neededRoom == 4096 + 8192)
  }

  @Test func anotherVersionIsAConflict() {
    let path: ByteString = ".mozilla/firefox/x/a"
    for other in [
      file(Self.target.appending(path), size: 2), file(Self.target.appending(path), at: 1),
      directory(Self.target.appending(path)),
      MigrationEntry(Self.target.appending(path), kind: .symlink, target: "y"),
    ] {
      let plan = plan([file(path)], [other])
      #expect(plan.conflicts.map(\.move.entry.path) == [path])
      #expect(plan.moves.isEmpty)
    }
  }

  @Test func nothingMovesThroughALinkOrAFile() {
    let link = MigrationEntry(
      Self.target.appending(".mozilla"), kind: .symlink, target: "/etc")
    let source = Self.profile.map(directory) + [file(".mozilla/firefox/x/a")]
    for obstacle in [link, file(Self.target.appending(".mozilla"))] {
      let plan = plan(source, [directory(Self.target), obstacle])
      #expect(plan.moves.isEmpty)
      #expect(plan.conflicts.count == source.count)
      #expect(plan.conflicts.last?.reason.contains("is not a directory") == true)
    }
    // This applies even if the directory itself is not in the source.
    let plan = plan([file(".mozilla/firefox/x/a")], [directory(Self.target), link])
    #expect(plan.conflicts.count == 1)
  }

  @Test func theCurrentRevisionOfASnapIsFollowed() {
    let snap = makeRoute("gimp", from: .deb, to: "gimp", as: .snap)
    let current = MigrationEntry("snap/gimp/current", kind: .symlink, target: "42")
    let plan = plan(
      [file(".config/GIMP/3.0/gimprc")], [directory("snap/gimp"), current], route: snap)
    #expect(plan.moves.map(\.destination) == ["snap/gimp/current/.config/GIMP/3.0/gimprc"])
  }

  @Test func betweenTwoUsersTheCurrentRevisionsMayDiffer() {
    let snap = makeRoute("gimp", from: .snap, to: "gimp", as: .snap, homes: ("/home/a", "/home/b"))
    let source = [
      directory("snap/gimp/current"), directory("snap/gimp/current/.config"),
      file("snap/gimp/current/.config/a"),
    ]
    let current = MigrationEntry("snap/gimp/current", kind: .symlink, target: "7")
    let whole = plan(source, [directory("snap/gimp"), current], route: snap)
    #expect(whole.moves.map(\.entry) == Array(source.dropFirst()))
    #expect(whole.conflicts.isEmpty)
    let none = plan(source, [directory("snap/gimp")], route: snap)
    #expect(none.moves.isEmpty)
    #expect(none.conflicts.first?.reason.contains("no current revision") == true)
  }

  /// They contain no data, and no backup stores them.
  @Test(arguments: [FileKind.socket, .fifo, .characterDevice, .blockDevice])
  func specialFilesAreSkipped(_ kind: FileKind) {
    let path: ByteString = ".mozilla/firefox/x/endpoint"
    let plan = plan([MigrationEntry(path, kind: kind)])
    #expect(plan.conflicts.isEmpty && plan.moves.isEmpty)
    #expect(plan.skipped.map(\.path) == [path])
    #expect(plan.skipped.first?.reason == "an endpoint of a running program contains no data")
  }

  @Test func dataWithoutAPlaceIsCountedByItsTopmostDirectory() {
    let container: ByteString = ".var/app/org.mozilla.firefox"
    let toHost = makeRoute("org.mozilla.firefox", from: .flatpak, to: "firefox", as: .host)
    let plan = plan(
      [
        directory(container), directory(container.appending("other")),
        file(container.appending("other/a"), size: 3),
        directory(container.appending("other/b")), file(container.appending("other/b/c"), size: 4),
        file(container.appending("single"), size: 5),
        directory(container.appending("config")), directory(container.appending("config/dconf")),
        file(container.appending("config/dconf/user"), size: 9),
      ], route: toHost)
    #expect(
      plan.withoutPlace.map(\.path) == [
        container.appending("other"), container.appending("single"),
      ])
    #expect(plan.withoutPlace.map(\.files) == [2, 1])
    #expect(plan.bytesWithoutPlace == 12)
    #expect(plan.skipped.map(\.bytes) == [9])
  }

  @Test func twoEntriesForOnePathAreAConflict() {
    let both = plan([file(".mozilla/firefox/x/a"), file(".mozilla/firefox/x/a")])
    #expect(both.moves.count == 1)
    #expect(both.conflicts.map(\.reason) == ["another entry moves to the same path"])
  }

  @Test func aPlanIsTheSameEachTime() {
    let source =
      Self.profile.map(directory)
      + (0..<50).map {
        file(ByteString(".mozilla/firefox/x/\($0)"))
      }
    #expect(plan(source).moves == plan(source).moves)
  }
}
