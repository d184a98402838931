import Foundation
import Migration
import SystemIO
import TestSupport
import Testing

struct SurveyTests {
  @Test func directoriesFilesAndLinksAreListed() throws {
    let home = try TemporaryDirectory("survey")
    try home.write("abc", at: ".mozilla/firefox/x/a")
    try home.write("x", at: ".other/b")
    try FileManager.default.createSymbolicLink(
      atPath: home.string + "/.mozilla/link", withDestinationPath: "/etc")
    let survey = try MigrationSurvey(of: home.path, paths: [".mozilla", ".missing"])
    #expect(
      survey.entries.map(\.path) == [
        ".mozilla", ".mozilla/firefox", ".mozilla/firefox/x", ".mozilla/firefox/x/a",
        ".mozilla/link",
      ])
    #expect(survey.entries.map(\.kind) == [.directory, .directory, .directory, .file, .symlink])
    #expect(survey.entries.map(\.size) == [0, 0, 0, 3, 0])
    #expect(survey.entries.last?.target == "/etc")
    #expect(survey.problems.isEmpty)
  }

  @Test func linksToAPlaceAreNotFollowed() throws {
    let home = try TemporaryDirectory("survey")
    try home.write("secret", at: "outside/a")
    try FileManager.default.createSymbolicLink(
      atPath: home.string + "/.mozilla", withDestinationPath: "outside")
    let survey = try MigrationSurvey(of: home.path, paths: [".mozilla", ".mozilla/a"])
    #expect(survey.entries.map(\.path) == [".mozilla"])
    #expect(survey.entries.map(\.kind) == [.symlink])
    #expect(survey.problems.map(\.path) == [".mozilla/a"])
  }

  @Test func aSnapsCurrentRevisionIsFollowedToItsSibling() throws {
    let home = try TemporaryDirectory("survey")
    try home.write("a", at: "snap/gimp/42/.config/a")
    let link = home.string + "/snap/gimp/current"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "42")
    let paths: [ByteString] = ["snap/gimp/current"]
    #expect(
      try MigrationSurvey(of: home.path, paths: paths).entries.map(\.path) == [
        "snap/gimp/current", "snap/gimp/current/.config", "snap/gimp/current/.config/a",
      ])
    // A link to another place can at most name a sibling.
    try FileManager.default.removeItem(atPath: link)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/etc")
    #expect(try MigrationSurvey(of: home.path, paths: paths).entries.isEmpty)
  }

  @Test func tooManyEntriesAreRefused() throws {
    let home = try TemporaryDirectory("survey")
    for index in 0..<20 { try home.write("", at: ByteString("d/\(index)")) }
    #expect(throws: OperationError.self) {
      try MigrationSurvey(of: home.path, paths: ["d"], limit: 10)
    }
    #expect(throws: OperationError.self) {
      try MigrationSurvey(of: home.path.appending("missing"), paths: ["d"])
    }
  }
}
