{
  description = "Language server for AI coding agents: editor context, access rules and checkpoints";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "x86_64-darwin"
        "aarch64-darwin"
      ];
      forSystems = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;
    in
    {
      packages = forSystems (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "sightline";
          inherit version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [
            "--package"
            "sightline"
          ];
          # The tests need editors and recorded behavior.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = ''
            "$out/bin/sightline" man --to man
            installManPage man/*
            installShellCompletion --cmd sightline \
              --bash <("$out/bin/sightline" completions bash) \
              --fish <("$out/bin/sightline" completions fish) \
              --zsh <("$out/bin/sightline" completions zsh)
          '';
          meta = {
            description = "Language server for AI coding agents";
            license = pkgs.lib.licenses.asl20;
            mainProgram = "sightline";
          };
        };
        # The plugin for Neovim.
        nvim = pkgs.vimUtils.buildVimPlugin {
          pname = "sightline.nvim";
          inherit version;
          # A file of the plugin is a link to another folder of the repository.
          src = pkgs.runCommand "sightline.nvim-source" { } ''
            cp --recursive --dereference "${self}/clients/nvim" "$out"
          '';
        };
      });
    };
}
