import SystemIO
import TestSupport
import Testing

/// An interrupted operation that cannot be recovered yet because its app is running: commands on
/// this app are refused with the reason; commands on other apps say that the recovery is postponed,
/// and do their work.
@Suite(.serialized, .enabled(if: Strace.isPermitted)) struct BlockedRecoveryTests {
  private static let left =
    "cannot finish the interrupted restore of 'apps/org.example.notebook/data': "

  @Test func otherAppsAreNotBlocked() throws {
    let (fixture, note) = try InterruptedRestoreTests.interrupted()
    let cli = fixture.cli
    let app = try OpenFileHolder(of: "\(note)")
    defer { app.end() }
    for command in [
      "offload darkroom --root device --no-snapshot",
      "restore latest --app darkroom --in-place --repo repo --no-snapshot",
    ] {
      let outcome = try cli.run(command)
      #expect(outcome.code == 0, "\(command): \(outcome.errors)")
      let said = "note: still pending: \(Self.left)"
      #expect(outcome.errors.contains(said), "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("process \(app.process) "), "\(command)")
    }
    let restored = try cli.succeed("apps --root device")
    #expect(restored.contains("1.10.2"), "\(restored)")
    for command in [
      "offload notebook --root device --no-snapshot",
      "uninstall notebook --root device --no-snapshot",
      "rollback notebook --root device --repo repo",
      "restore latest --app notebook --in-place --repo repo --no-snapshot",
      "restore latest --in-place --repo repo --no-snapshot",
    ] {
      let outcome = try cli.run(command)
      #expect(outcome.code == 1, "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("error: \(Self.left)"), "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("process \(app.process) "), "\(command)")
    }
    #expect(try fixture.text(note) == "spoilt", "the operation was not continued")
    // The users of a group are unknown as long as an app may lack its bundle.
    let group = try cli.run(
      "restore latest --app reader --in-place --repo repo --no-snapshot --with-groups")
    #expect(group.code == 1)
    let why = "cannot change 'groups/group.org.example.library': other apps may share it: "
    #expect(group.errors.contains("error: \(why)\(Self.left)"), "\(group.errors)")
  }

  /// A mistake in the user's policy file does not prevent a recovery.
  @Test func invalidPolicyFileBlocksNoRecovery() throws {
    let (fixture, note) = try InterruptedRestoreTests.interrupted()
    let cli = fixture.cli
    let file: ByteString = "home/.config/sandboxctl/policies/site.yaml"
    try cli.directory.write("overlay: all\nschema: 1\ngrups: {}\n", at: file)
    let listed = try cli.run("apps --root device")
    #expect(listed.code == 0 && listed.output.contains("notebook"), "\(listed.errors)")
    #expect(listed.errors.contains("warning: cannot use the policy"), "\(listed.errors)")
    #expect(listed.errors.contains("the built-in policy is used instead"), "\(listed.errors)")
    try cli.directory.write("overlay: all\nschema: 1\ngrups: {}\n", at: "wrong.yaml")
    #expect(try cli.run("recover --root device --policy wrong.yaml").code == 1)
    #expect(try fixture.text(note) == "spoilt")
    let recovered = try cli.run("recover --root device")
    #expect(recovered.code == 0, "\(recovered.errors)")
    #expect(recovered.output.contains("finished the interrupted restore"), "\(recovered.output)")
    #expect(recovered.errors.contains("site.yaml:3:1: "), "\(recovered.errors)")
    #expect(try fixture.text(note) != "spoilt")
  }

  @Test func recoveryNamesWhatBlocksIt() throws {
    let (fixture, note) = try InterruptedRestoreTests.interrupted()
    let app = try OpenFileHolder(of: "\(note)")
    defer { app.end() }
    let reported = try fixture.cli.run("recover --root device")
    #expect(reported.code == 1 && reported.output.isEmpty, "\(reported.output)")
    #expect(reported.errors.contains("error: \(Self.left)"), "\(reported.errors)")
    let outcome = try fixture.cli.run("recover --root device --json")
    #expect(outcome.code == 1 && outcome.errors.contains("\"exit_status\":1"), "\(outcome.errors)")
    let answer = try CommandLine.object(outcome.output.split(separator: "\n")[0])
    let operations = answer["operations"] as? [[String: Any]] ?? []
    #expect(operations.map { $0["outcome"] as? String } == ["left"])
    #expect((operations.first?["reason"] as? String)?.hasPrefix(Self.left) == true)
    app.end()
    let finished = try fixture.cli.succeed("recover --root device")
    #expect(finished.contains("finished the interrupted restore"), "\(finished)")
    #expect(try fixture.text(note) != "spoilt")
  }
}
