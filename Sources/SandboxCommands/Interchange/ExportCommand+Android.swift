internal import ArchiveStore
internal import ArgumentParser
internal import Codecs
internal import Interchange
internal import SandboxModel
internal import SystemIO

extension ExportCommand {
  /// `sandboxctl export android`: writes a backup as `adb backup` does.
  struct Android: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "android",
        abstract: "Write a snapshot as an Android backup (.ab)",
        usage: "sandboxctl export android [<snap[:path]>] <file> [--rules <file>] "
          + "[--password-file <file>] [<options>]",
        discussion: """
          Writes a compressed backup of the apps in a snapshot, encrypted if a password is given. \
          It can contain only files and directories: links and special files are reported, and the \
          exit status is 3. Android restores a package only with its manifest, which an imported \
          backup has. SNAP defaults to 'latest'. '-' writes to standard output. With --rules, what \
          Android's Auto Backup would not store is excluded and listed, and rules that Android \
          ignores are reported.

          \(Examples.text([
            "sandboxctl export android latest:notebook/Documents/Notes notes.ab"
          ]))
          """)
    }

    @OptionGroup var export: ArchiveExportOptions
    @OptionGroup var rules: AutoBackupOptions
    @OptionGroup var password: BackupPasswordOptions
    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var progress: ReadingOptions
    @OptionGroup var list: ListOptions
    @OptionGroup var output: OutputOptions

    static var precedence: [OptionPrecedence] { ArchiveExportOptions.precedence }
    static var needs: [OptionNeed] { OptionNeed.of("transfer", other: "rules") }

    static func choices(of arguments: [String]) -> Set<String> {
      ArchiveExportOptions.choices(of: arguments)
    }

    func run(_ console: Console) throws -> ExitStatus {
      try ArchiveExportOptions.requireName(export.file, of: .android)
      let rules = try rules.read()
      rules.showRemarks(console, all: list.all)
      let secret = try password.read(of: export.file, isNew: true, console)
      var sink: AutoBackupSink?
      let status = try ArchiveExport(
        export: export, repository: repository, progress: progress, list: list, output: output,
        keepsPaths: true, excluded: { rules.isEmpty ? nil : sink?.exclusions }
      ).run(console) { content, bytes throws -> AutoBackupSink in
        try rules.requireApps(of: content.stored.snapshot, self.export.what)
        let writer = try AndroidBackupWriter(
          to: export.file, encryptedWith: secret, manifests: content.androidManifests(),
          write: bytes)
        let made = AutoBackupSink(to: writer, rules: rules, for: self.rules.destination)
        sink = made
        return made
      }
      sink?.show(of: rules, console, all: list.all, isQuiet: output.quiet)
      return status
    }
  }
}

extension ExportedContent {
  /// Returns the manifests of the apps that have none in the content: that of the snapshot, or one
  /// made from the facts about the app.
  fileprivate func androidManifests() throws -> [ByteString: AndroidManifest] {
    var manifests: [ByteString: AndroidManifest] = [:]
    for app in stored.snapshot.apps {
      let package = ByteString(app.identifier)
      let path = ByteString(
        joining: ["apps", LogicalName(package).component, "bundle", "_manifest"])
      let entry = try entry(at: path)
      if entry != nil, top.isEmpty || path.isWithin(top) { continue }
      manifests[package] =
        try entry.flatMap(manifest)
        ?? AndroidManifest(package: package, versionCode: app.build.flatMap { Int64($0) } ?? 0)
    }
    return manifests
  }

  /// Returns an entry of the snapshot; nil if there is none or it cannot be read, which the export
  /// reports.
  private func entry(at path: ByteString) throws(StoreError) -> TreeEntry? {
    do throws(StoreError) {
      return try reader.entry(at: path, in: stored.snapshot.tree)
    } catch {
      if error.kind == .damaged { return nil }
      throw error
    }
  }

  /// Returns the manifest that a file contains; nil if it contains none or cannot be read.
  private func manifest(_ entry: TreeEntry) throws -> AndroidManifest? {
    guard case .file(let content) = entry.node, content.size < AndroidManifest.sizeLimit else {
      return nil
    }
    var bytes: [UInt8] = []
    do {
      try reader.writeBytes(of: content) { bytes.append($0) }
    } catch let error as StoreError where error.kind == .damaged {
      return nil
    }
    return AndroidManifest(bytes)
  }
}
