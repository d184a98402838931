import Codecs
import Foundation
import SystemIO
import TestSupport
import Testing

@testable import ArchiveStore
@testable import RemoteStorage

/// The storage on OpenSSH's server.
@Suite(.enabled(if: SFTPFixture.isInstalled)) struct SFTPStorageTests {
  private let fixture: SFTPFixture

  init() throws { fixture = try SFTPFixture() }

  @Test(arguments: StorageConformance.all)
  func meetsTheRequirements(requirement: StorageConformance) throws {
    try requirement.check(try fixture.create())
  }

  /// The same requirements, without the extensions.
  @Test(arguments: StorageConformance.all)
  func meetsTheRequirementsOnAPlainServer(requirement: StorageConformance) throws {
    let server = FaultyServer(lacking: SFTPExtension.allCases)
    try requirement.check(try fixture.create(through: server.connector))
  }

  /// Heartbeats on a server that does not allow setting the size or the time of a file.
  @Test func filesAreTouchedOnAServerThatSetsNoSize() throws {
    let words = [ByteString(SFTPFixture.server), "-P", "setstat,fsetstat"]
    let storage = try fixture.make("fixed", through: SFTPConnector(words: words))
    let object = try path("lease/alive")
    for _ in 0..<2 {
      try storage.touch(object)
      let file = fixture.directory.string + "/fixed/lease/alive"
      let time = Date(timeIntervalSince1970: 1_000_000)
      try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file)
      try storage.touch(object)
      let status = try #require(try storage.status(object))
      #expect(status.size == 0 && status.modified.seconds > 1_000_000)
    }
  }

  @Test func warningsNameTheMissingExtensions() throws {
    let complete = try fixture.make()
    try complete.save([1], as: path("objects/a"), by: path("lease"))
    #expect(complete.warnings.isEmpty)
    let server = FaultyServer(lacking: [.rename, .sync])
    let plain = try fixture.open(through: server.connector)
    try plain.save([2], as: path("objects/a"), by: path("lease"))
    #expect(plain.warnings.count == 2)
    #expect(plain.warnings.allSatisfy { $0.contains("sandboxctl check") })
    // A replaced object leaves nothing behind.
    #expect(try plain.list(path("lease")).isEmpty)
    #expect(try complete.load(path("objects/a"), limit: 1) == [2])
  }

  @Test func objectsAreReadableByTheirOwnerOnly() throws {
    let storage = try fixture.create("a/b/store")
    try storage.makeDirectories(["objects", "lease"], in: .root)
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    try storage.touch(path("lease/alive"))
    #expect(try fixture.mode("a") == 0o700)
    #expect(try fixture.mode("a/b/store") == 0o700)
    #expect(try fixture.mode("a/b/store/objects") == 0o700)
    #expect(try fixture.mode("a/b/store/objects/a") == 0o600)
    #expect(try fixture.mode("a/b/store/lease/alive") == 0o600)
  }

  /// Several objects are touched concurrently, and several directories are listed concurrently.
  @Test(arguments: [true, false]) func manyAtOnce(isComplete: Bool) throws {
    let server = FaultyServer(lacking: isComplete ? [] : SFTPExtension.allCases)
    let storage = try fixture.create(through: server.connector)
    try storage.makeDirectories(["packs", "index", "lease"], in: .root)
    try storage.makeDirectories(["00", "01", "02"], in: path("packs"))
    for number in 0..<3 {
      try storage.save(
        [UInt8](repeating: 1, count: number + 1), as: path("packs/0\(number)/p"),
        by: path("lease"))
    }
    let signs = try [path("lease/alive"), path("lease/by")]
    try storage.touch(signs)
    let before = try storage.status(signs[0])
    #expect(before?.size == 0 && before?.isDirectory == false)
    // Existing objects get a new time, and the other one is created.
    try storage.save([7], as: signs[1], by: path("lease"))
    try storage.touch(signs + [path("lease/seen")])
    #expect(try storage.list(path("lease")) == ["alive", "by", "seen"])
    #expect(try storage.status(signs[1])?.size == 0)
    let listings = try storage.listAll([path("packs"), path("damaged"), path("lease")])
    #expect(listings.map { $0?.names } == [["00", "01", "02"], nil, ["alive", "by", "seen"]])
    #expect(listings[0]?.statuses?["01"]?.isDirectory == true)
    #expect(listings[2]?.statuses?["alive"]?.size == 0)
    var sizes: [ObjectPath: UInt64] = [:]
    try storage.forEachObject(
      belowAny: [path("packs/00"), path("packs/02"), path("packs/ff")]
    ) { sizes[$0] = $1.size }
    #expect(try sizes == [path("packs/00/p"): 1, path("packs/02/p"): 3])
    #expect(storeError { try storage.touch([path("none/alive")]) }?.code == .missing)
    // Directories are removed like files, but only if they are empty.
    #expect(throws: StoreError.self) { try storage.remove(path("lease")) }
    for name in ["lease/alive", "lease/by", "lease/seen", "lease"] {
      try storage.remove(path(name))
    }
    #expect(storeError { try storage.remove(path("lease")) }?.code == .missing)
  }

  /// A link in place of an object is not followed.
  @Test func linksAreNotTouched() throws {
    let storage = try fixture.make()
    try fixture.directory.write("kept", at: "outside")
    try FileManager.default.createSymbolicLink(
      atPath: fixture.directory.string + "/store/lease/alive",
      withDestinationPath: fixture.directory.string + "/outside")
    #expect(throws: StoreError.self) { try storage.touch([path("lease/alive")]) }
    #expect(try fixture.directory.read("outside") == Array("kept".utf8))
  }

  @Test func existingEmptyDirectoryIsClosedToOthers() throws {
    _ = try Directory.make(path: fixture.directory.path("store"), permissions: 0o755)
    _ = try fixture.create()
    #expect(try fixture.mode("store") == 0o700)
    try fixture.directory.write("x", at: "used/file")
    let before = try fixture.mode("used")
    _ = try fixture.create("used")
    #expect(try fixture.mode("used") == before)
  }

  @Test func missingDirectoryIsNotARepository() throws {
    let error = storeError { try fixture.open("none") }
    #expect(error?.kind == .noRepository && error?.hint != nil)
    try fixture.directory.write("x", at: "file")
    #expect(storeError { try fixture.open("file") }?.kind == .noRepository)
    #expect(storeError { try fixture.create("file") } != nil)
  }

  @Test func linksBelowTheRootAreNotFollowed() throws {
    let storage = try fixture.make()
    let store = fixture.directory.string + "/store"
    try fixture.directory.write("foreign", at: "elsewhere/file")
    for (link, target) in [
      ("objects/link", "../../elsewhere/file"), ("away", "../elsewhere"),
      ("objects/none", "nothing"),
    ] {
      try FileManager.default.createSymbolicLink(
        atPath: store + "/" + link, withDestinationPath: target)
    }
    #expect(storeError { try storage.load(path("objects/link"), limit: 99) }?.code == .damaged)
    #expect(
      storeError { try storage.load(path("objects/link"), offset: 0, count: 1) }?.code == .damaged)
    #expect(storeError { try storage.load(path("away/file"), limit: 99) } != nil)
    #expect(storeError { try storage.list(path("away")) } != nil)
    #expect(storeError { try storage.touch(path("objects/link")) } != nil)
    #expect(storeError { try storage.touch(path("objects/none")) } != nil)
    #expect(storeError { try storage.touch(path("away/new")) } != nil)
    #expect(storeError { try storage.startObject(in: path("away")) } != nil)
    #expect(storeError { try storage.makeDirectories(["d"], in: path("away")) } != nil)
    #expect(storeError { try storage.remove(path("away/file")) } != nil)
    #expect(storeError { try storage.forEachObject(below: path("away")) { _, _ in } } != nil)
    #expect(try storage.status(path("objects/link")) == nil)
    try storage.forEachObject(below: .root) { path, _ in Issue.record("\(path) was listed") }
    #expect(try fixture.directory.read("elsewhere/file") == Array("foreign".utf8))
    #expect(try Directory.open(path: fixture.directory.path("elsewhere")).names() == ["file"])
    // The link itself is removed, not its target.
    try storage.remove(path("objects/link"))
    #expect(try fixture.directory.read("elsewhere/file") == Array("foreign".utf8))
  }

  /// A server that opens a named pipe blocks until there is a writer: the object is damaged, and
  /// others can still be read.
  @Test func pipeInsteadOfAnObjectIsDamaged() throws {
    let storage = try fixture.make()
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    try #require(mkfifo(fixture.directory.string + "/store/objects/pipe", 0o600) == 0)
    #expect(storeError { try storage.load(path("objects/pipe"), limit: 9) }?.code == .damaged)
    #expect(
      storeError { try storage.load(path("objects/pipe"), offset: 0, count: 1) }?.code == .damaged)
    #expect(try storage.load(path("objects/a"), limit: 1) == [1])
  }

  /// Names are bytes, and so is the path of the repository.
  @Test func namesOfAnyBytesAreKept() throws {
    let name = ByteString([0xff, 0x20, 0x0a, 0xc3, 0x28])
    let storage = try fixture.create(name)
    try storage.makeDirectories([name, "lease"], in: .root)
    let object = ObjectPath.root.appending(name).appending(name)
    try storage.save([1, 2], as: object, by: path("lease"))
    #expect(try storage.list(.root.appending(name)) == [name])
    #expect(try storage.load(object, limit: 2) == [1, 2])
    let local = try LocalStorage(path: fixture.directory.path(name))
    #expect(try local.load(object, limit: 2) == [1, 2])
  }

  /// A directory has more entries than fit into one answer, and a tree has more directories than
  /// are listed concurrently.
  @Test func largeListingsAreComplete() throws {
    let storage = try fixture.make()
    let store = fixture.directory.path("store")
    for number in 0..<40 {
      let directory = try Directory.make(path: store.appending(ByteString("objects/d\(number)")))
      for file in 0..<(number == 3 ? 700 : 3) {
        try directory.create(ByteString("f\(file)"), permissions: 0o600).write([1])
      }
    }
    var found: Set<ObjectPath> = []
    try storage.forEachObject(below: path("objects")) { path, status in
      #expect(found.insert(path).inserted && status.size == 1)
    }
    #expect(found.count == 39 * 3 + 700)
    #expect(try storage.list(path("objects/d3")).count == 700)
  }

  @Test func spaceIsThatOfTheVolume() throws {
    let storage = try fixture.make()
    let local = try #require(try LocalStorage(path: fixture.directory.path("store")).space())
    let space = try #require(try storage.space())
    #expect(space.total == local.total && space.countsInodes == local.countsInodes)
    let server = FaultyServer(lacking: [.space])
    #expect(try fixture.open(through: server.connector).space() == nil)
  }

  /// The server runs as a user without write permission.
  @Test(.enabled(if: Host.userID == 0)) func missingPermissionIsReported() throws {
    let storage = try fixture.make()
    try storage.save([1], as: path("objects/a"), by: path("lease"))
    for name in ["", "store", "store/objects", "store/lease", "store/objects/a"] {
      let mode = name.hasSuffix("/a") ? 0o644 : 0o755
      try FileManager.default.setAttributes(
        [.posixPermissions: mode], ofItemAtPath: fixture.directory.string + "/" + name)
    }
    let words: [ByteString] = [
      "setpriv", "--reuid=65534", "--clear-groups", ByteString(SFTPFixture.server),
    ]
    let other = try fixture.open(through: SFTPConnector(words: words))
    #expect(try other.load(path("objects/a"), limit: 1) == [1])
    for error in [
      storeError { try other.startObject(in: path("lease")) },
      storeError { try other.makeDirectories(["x"], in: .root) },
      storeError { try other.touch(path("lease/alive")) },
      storeError { try other.remove(path("objects/a")) },
      storeError { try other.rename(path("objects/a"), to: path("objects/b")) },
    ] {
      #expect(error?.errorCode == .permissionDenied && error?.action == "write to the repository")
      #expect(error?.hint?.contains("on the server") == true)
    }
    #expect(try storage.load(path("objects/a"), limit: 1) == [1])
  }

  /// A full volume is reported as such, although the protocol has no code for it.
  @Test(.enabled(if: try Mount.isPermitted())) func fullVolumeIsReported() throws {
    let target = fixture.directory.path("store")
    _ = try Directory.make(path: target)
    let mount = try Mount(inMemory: "size=1m", on: target)
    defer { withExtendedLifetime(mount) {} }
    let storage = try fixture.make()
    let writer = try storage.startObject(in: path("lease"))
    let error = storeError {
      for _ in 0..<40 { try writer.append([UInt8](repeating: 1, count: 64 << 10)) }
      try writer.commit(as: path("objects/a"), digest: Blake2b.hash([]), isReadSoon: true)
    }
    writer.discard()
    #expect(error?.errorCode == .noSpace && error?.cause?.isFull == true, "\(error as Any)")
    #expect(try storage.list(path("lease")).isEmpty)
  }

  /// No process is left behind, whether the storage is closed or released.
  @Test(arguments: [true, false]) func serverEndsWithTheStorage(isClosed: Bool) throws {
    let script = "echo $$ > '\(fixture.directory.string)/pid'; exec \(SFTPFixture.server)"
    let connector = SFTPConnector(words: ["sh", "-c", ByteString(script)])
    var storage: SFTPStorage? = try fixture.create(through: connector)
    try storage?.makeDirectories(["objects"], in: .root)
    let text = String(decoding: try fixture.directory.read("pid"), as: UTF8.self)
    let process = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(kill(process, 0) == 0)
    if isClosed { storage?.close() } else { storage = nil }
    #expect(kill(process, 0) != 0)
    // A closed storage connects again.
    #expect(try storage?.list(.root) ?? ["objects"] == ["objects"])
  }
}
