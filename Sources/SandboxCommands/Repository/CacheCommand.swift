internal import ArchiveStore
internal import ArgumentParser
internal import Backup
internal import Codecs
internal import DeviceScan
internal import RemoteStorage
internal import SystemIO

/// `sandboxctl cache`: lists and removes the caches of this host.
struct CacheCommand: ParsableCommand {
  static var configuration: CommandConfiguration {
    CommandConfiguration(
      commandName: "cache",
      abstract: "List or remove this host's caches of repositories",
      discussion: """
        The cache of a repository contains the state of the files that this host backed up, and \
        copies of the index, so that commands read only what changed. It contains the names of the \
        files even if the repository is encrypted. It can be removed at any time and is rebuilt \
        when needed. Without a subcommand the caches are listed, with the options of 'cache list'.

        \(Examples.text([
          "sandboxctl cache --repo repo", "sandboxctl cache clear --repo repo",
        ]))
        """,
      subcommands: [List.self, Clear.self],
      defaultSubcommand: List.self)
  }
}

extension CacheCommand {
  /// `sandboxctl cache [list]`: lists the caches.
  struct List: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "list",
        abstract: "List this host's caches of repositories",
        usage: "sandboxctl cache [list] [--repo <repo>] [<options>]",
        discussion: """
          Prints a line for each repository, the last used first: its id, the size and number of \
          the cache's files, and the time when a command last wrote to it. The path is shown only \
          for the repository that the command selects, because a cache does not record it. No key \
          is needed, and the repository need not exist unless it is named by '--repo'.

          \(Examples.text(["sandboxctl cache list", "sandboxctl cache list --repo repo --json"]))
          """)
    }

    @OptionGroup var repository: RepositoryOptions
    @OptionGroup var output: OutputOptions

    func run(_ console: Console) throws -> ExitStatus {
      let own = try own()
      let (caches, others) = try HostCaches.listOfHost()
      if output.json {
        for cache in caches {
          try console.result(cache.json(path: own?.id == cache.id ? own?.path : nil))
        }
      } else if !caches.isEmpty {
        try show(caches, of: own, console)
      } else if !output.quiet {
        console.note("this host has no cache of a repository")
      }
      if !output.quiet {
        console.list(
          others + caches.flatMap(\.others), as: .note("not part of a cache: "), all: false,
          text: Paths.text)
      }
      return .done
    }

    private func show(
      _ caches: [RepositoryCache], of own: (id: Digest, path: ByteString)?, _ console: Console
    ) throws {
      var table = Table([
        ("repository", .left), ("size", .right), ("files", .right), ("last used", .left),
        ("path", .left),
      ])
      for cache in caches {
        table.add([
          cache.id.shortened, Sizes.text(cache.totals.bytes), Sizes.count(cache.totals.files),
          Times.ago(cache.lastUse), own?.id == cache.id ? Paths.text(own?.path ?? "") : "",
        ])
      }
      try console.result(table)
    }

    /// Returns the repository of the command; nil if there is none and the option does not name
    /// one.
    private func own() throws -> (id: Digest, path: ByteString)? {
      do {
        let choice = try repository.choice()
        return (id: try choice.open().repository.id, path: choice.location.text)
      } catch {
        guard repository.repo == nil else { throw error }
        return nil
      }
    }
  }

  /// `sandboxctl cache clear`: removes caches.
  struct Clear: SandboxCommand {
    static var configuration: CommandConfiguration {
      CommandConfiguration(
        commandName: "clear",
        abstract: "Remove this host's cache of a repository",
        usage: "sandboxctl cache clear [<id> ...] [--repo <repo>] [--all] [<options>]",
        discussion: """
          Removes the cache of the repository, or those with the given ids. No key is needed, and \
          with an id the repository need not exist. The next backup of each source then reads all \
          files again; it stores them again only if the repository is encrypted and this host has \
          no key. While a backup to the repository is running, nothing is removed, and the exit \
          status is 11. The exit status is 3 if something could not be removed.

          \(Examples.text([
            "sandboxctl cache clear --repo repo --dry-run", "sandboxctl cache clear --all",
          ]))
          """)
    }

    @Argument(
      help: ArgumentHelp(
        "The caches, by the first digits of the ids that 'cache list' prints, at least four "
          + "(default: that of the repository).",
        valueName: "id"))
    var ids: [String] = []

    @OptionGroup var repository: RepositoryOptions

    @Flag(help: "Remove the caches of all repositories.")
    var all = false

    @Flag(name: .shortAndLong, help: "Show what would be removed, without removing it.")
    var dryRun = false

    @OptionGroup var output: OutputOptions

    /// In other commands, `--all` concerns the length of a list, and the configuration may set it
    /// for all commands.
    static var ownOptions: Set<String> { ["all"] }

    static var precedence: [OptionPrecedence] {
      OptionPrecedence.oneOf(["all"], [OptionPrecedence.arguments, "repo"])
    }

    func run(_ console: Console) throws -> ExitStatus {
      try requireOneChoice()
      let (caches, others) = try HostCaches.listOfHost()
      let chosen = try selection(among: caches)
      let cleared = try HostCaches.ofHost?.clear(chosen, isDryRun: dryRun) ?? []
      for cache in cleared { try show(cache, console) }
      if all { warn(of: others, console) }
      if !output.quiet {
        console.note(
          cleared.isEmpty
            ? "there is no cache to remove"
            : "the next backup of each source reads all of its files again")
      }
      return cleared.allSatisfy(\.failed.isEmpty) ? .done : .doneInPart
    }

    /// Refuses `--all` together with the name of a cache.
    private func requireOneChoice() throws(UsageError) {
      guard all, !ids.isEmpty || repository.repo != nil else { return }
      let other = ids.isEmpty ? "'--repo'" : "an id"
      throw UsageError(
        .optionsConflict, "'--all' and \(other) cannot be used together",
        hint: "omit '--all' to remove one cache")
    }

    /// Returns the ids of the caches to remove.
    private func selection(among caches: [RepositoryCache]) throws -> [Digest] {
      let present = caches.map(\.id)
      if all { return present }
      if ids.isEmpty {
        let own = try own()
        return present.filter { $0 == own }
      }
      let named = Set(try ids.map { try Self.id($0, among: present) })
      return present.filter { named.contains($0) }
    }

    /// Returns the id of the command's repository.
    private func own() throws -> Digest {
      do {
        return try repository.open().repository.id
      } catch let error as StoreError {
        guard error.code == .noRepository else { throw error }
        throw error.hinting(
          "if the repository is gone, name its cache by its id: 'sandboxctl cache list' lists them")
      }
    }

    /// Returns the only id that begins with the given digits.
    private static func id(_ digits: String, among ids: [Digest]) throws -> Digest {
      let isValid = digits.utf8.count >= 4 && digits.utf8.count <= 2 * Digest.byteCount
      guard isValid, digits.allSatisfy({ $0.isASCII && $0.isHexDigit && !$0.isUppercase }) else {
        throw UsageError(
          .invalidValue, "'\(ByteString(digits))' is not the beginning of an id",
          hint: "an id has at least four digits, 0 to 9 and a to f; 'sandboxctl cache list' lists "
            + "the ids")
      }
      let found = ids.filter { $0.hex.hasPrefix(digits) }
      if let only = found.first, found.count == 1 { return only }
      guard found.isEmpty else {
        throw UsageError(
          .invalidValue, "'\(digits)' is the beginning of \(Sizes.count(found.count, "id"))",
          hint: "give more digits; 'sandboxctl cache list --json' lists the complete ids")
      }
      throw OperationError(
        .notFound, "find the cache", subject: digits, reason: "there is no cache with such an id",
        hint: "'sandboxctl cache list' lists the ids")
    }

    /// Prints what was removed, and warns a host that may not be able to read its repository.
    private func show(_ cache: ClearedCache, _ console: Console) throws {
      if output.json {
        try console.result(cache.json(isDryRun: dryRun))
      } else if !output.quiet {
        let files = Sizes.count(cache.removed.files, "file")
        try console.result(
          "\(dryRun ? "would remove" : "removed") the cache of repository \(cache.id.shortened): "
            + "\(files), \(Sizes.text(cache.removed.bytes))")
      }
      console.remarks(cache.failed, as: .warning("not removed: "), all: false)
      warn(of: cache.others, console)
      if KnownRecipients.exists(ofRepository: cache.id), repository.keys.named == nil {
        console.warning(
          "a host without a key of the encrypted repository \(cache.id.shortened) stores all of "
            + "its files again with the next backup, as it cannot read what is stored")
      }
    }

    private func warn(of others: [ByteString], _ console: Console) {
      console.list(
        others, as: .warning("kept, as it is not part of a cache: "), all: false, text: Paths.text)
    }
  }
}

extension HostCaches {
  /// The caches of this host; nil if there is no cache directory.
  fileprivate static var ofHost: HostCaches? { Host.cacheDirectory.map { HostCaches(in: $0) } }

  /// Returns the caches of this host, and the other entries of their directory.
  fileprivate static func listOfHost() throws(SystemError) -> (
    caches: [RepositoryCache], others: [ByteString]
  ) {
    guard let host = ofHost else { return ([], []) }
    return try host.list()
  }
}

extension Digest {
  /// The first digits, which text output shows.
  fileprivate var shortened: String { String(hex.prefix(8)) }
}

extension RepositoryCache {
  /// The cache as a line of `cache list --json`.
  fileprivate func json(path: ByteString?) -> JSON {
    .object(
      [JSON.Member("id", .string(id.hex))] + (path.map { JSON.path($0) } ?? []) + [
        JSON.Member("holds", totals.json),
        JSON.Member("last_used", .string(lastUse.rfc3339)),
        JSON.Member("others", .array(others.map { .object(JSON.path($0)) })),
      ])
  }
}

extension ClearedCache {
  /// The cache as a line of `cache clear --json`.
  fileprivate func json(isDryRun: Bool) -> JSON {
    .object([
      JSON.Member("id", .string(id.hex)), JSON.Member("dry_run", .bool(isDryRun)),
      JSON.Member("removed", removed.json),
      JSON.Member("others", .array(others.map { .object(JSON.path($0)) })),
      JSON.Member("failed", .array(failed.map(\.json))),
    ])
  }
}
