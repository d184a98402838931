import Codecs
import SystemIO
import TestSupport
import Testing

@testable import AppPackages
@testable import SandboxModel

struct ContainerMigrationTests {
  private let app = BundleIdentifier("com.example.x") ?? { preconditionFailure() }()

  private func read(_ list: PropertyList) throws -> ContainerMigration {
    try ContainerMigration(reading: list.xml(), for: app)
  }

  private func text(_ values: String...) -> PropertyList {
    .array(values.map { .string($0) })
  }

  private func refusal(_ members: PropertyList.Member...) -> String? {
    do {
      _ = try read(.dictionary(members))
      return nil
    } catch let error as ModelError {
      return error.reason
    } catch {
      return "\(error)"
    }
  }

  @Test func variablesAndPairsAreRead() throws {
    let migration = try read(
      .dictionary([
        .init(
          "Move",
          .array([
            .string("${ApplicationSupport}/Ex"),
            .string("${Library}/Preferences/${BundleId}.plist"),
            text("${Documents}/Ex Files/old", "${AutosavedInformation}/new"),
            text("${Home}/.ex", "${Caches}/${BundleId}/a-${BundleId}"),
          ])),
        .init("Symlink", text("${Home}/Pictures/Ex")),
      ]))
    let preferences: ByteString = "Library/Preferences/com.example.x.plist"
    #expect(
      migration.moves == [
        .init(
          source: "Library/Application Support/Ex", destination: "Library/Application Support/Ex"),
        .init(source: preferences, destination: preferences),
        .init(
          source: "Documents/Ex Files/old", destination: "Library/Autosave Information/new"),
        .init(source: ".ex", destination: "Library/Caches/com.example.x/a-com.example.x"),
      ])
    #expect(migration.links == ["Pictures/Ex"])
    #expect(try read(.dictionary([])) == ContainerMigration())
  }

  @Test(arguments: [
    "/etc/passwd", "Library/x", "${Nothing}/x", "${BundleId}/x", "${Library}", "${Home}/Documents",
    "${Home}/../x", "${Library}/..", "${Library}/./x", "${Library}//x", "${Library}/x/", "",
    "${Home}/Library/Containers/com.other/x", "${Library}/Group Containers/g", "${Library/x",
    "x/${Library}", "${Library}/a${Home}b", "${Library}x/y", "${Home}/Library/Application Support",
  ])
  func pathsOutsideAreRefused(path: String) throws {
    #expect(refusal(.init("Move", text(path))) != nil)
    #expect(refusal(.init("Move", .array([text("${Library}/x", path)]))) != nil)
    #expect(refusal(.init("Move", .array([text(path, "${Library}/x")]))) != nil)
    #expect(refusal(.init("Symlink", text(path))) != nil)
  }

  /// If two targets were the same, one file would be lost.
  @Test func conflictingTargetsAreRefused() throws {
    #expect(refusal(.init("Move", text("${Home}/a", "${Home}/a")))?.contains("twice") == true)
    #expect(
      refusal(.init("Move", text("${Home}/a/b", "${Home}/a-b", "${Home}/a")))?.contains("'a/b'")
        == true)
    let pair = text("${Home}/b", "${Home}/a")
    #expect(
      refusal(.init("Move", .array([.string("${Home}/a"), pair])))?.contains("creates") == true)
    #expect(
      refusal(.init("Move", text("${Home}/a")), .init("Symlink", text("${Home}/a/b"))) != nil)
    #expect(refusal(.init("Move", text("${Home}/a", "${Home}/a-b", "${Home}/ab"))) == nil)
  }

  @Test func otherTypesAreRefused() throws {
    #expect(refusal(.init("Move", .string("${Home}/a")))?.contains("not array") == true)
    #expect(refusal(.init("Move", .array([.integer(1)])))?.contains("neither") == true)
    #expect(refusal(.init("Move", .array([text("${Home}/a")])))?.contains("neither") == true)
    #expect(refusal(.init("Symlink", .array([text("${Home}/a")])))?.contains("string") == true)
    #expect(throws: ModelError.self) { try read(.array([])) }
    #expect(throws: ModelError.self) { try ContainerMigration(reading: [1, 2], for: app) }
  }

  /// The migration list of a published app.
  @Test(.enabled(if: Shared.has("fixtures/migration"))) func realListIsRead() throws {
    let bytes = try Shared.bytes("fixtures/migration/container-migration.plist")
    let migration = try ContainerMigration(reading: bytes, for: app)
    let location: ByteString = "Library/Application Support/Pecunia"
    #expect(migration.moves == [.init(source: location, destination: location)])
    #expect(migration.links.isEmpty)
  }
}
